"""The classes of a task among those of a head that all tasks of a stream share.

N rows, K classes of the whole stream, M of them met so far.
"""

from dataclasses import dataclass

import numpy as np

NEVER = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class SharedClasses:
    """Where a task's own classes stand among those of the stream.

    A place is a class's position in the order in which the stream meets the classes, so that the
    classes met so far come first.

    Attributes:
        names: of every class of the stream by its place, ``task/label``; of tasks that share their
            labels the task whose name comes first in the alphabet.
        places: the place of each of the task's labels, in their order.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def reach(self) -> int:
        """How many classes are met, at least, once the task is."""
        return max(self.places) + 1

    def to_places(self, labels: np.ndarray) -> np.ndarray:
        """Return the places of the task's own class indices, int64 [N]."""
        return np.asarray(self.places, np.int64)[labels]

    def to_own(self, places: np.ndarray) -> np.ndarray:
        """Return the task's own class indices of places, int64 [N]; each must be of the task."""
        own = np.full(len(self.names), -1)
        own[list(self.places)] = np.arange(len(self.places))
        found = own[places]
        assert (found >= 0).all(), "a label of another task"
        return found

    def own_view(self, logits: np.ndarray) -> np.ndarray:
        """Return logits [N, M] as the task sees them: its own classes, then the best of the others.

        float32 [N, own + 1]. So the arg max is one of the task's own class indices, or the index
        behind them where a class of another task wins. Classes that are not met never win.
        """
        met = np.full((len(logits), len(self.names)), NEVER, np.float32)
        met[:, : logits.shape[1]] = logits
        others = np.delete(met, self.places, axis=1).max(axis=1, initial=NEVER)
        return np.concatenate([met[:, self.places], others[:, None]], axis=1)
