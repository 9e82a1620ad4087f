"""A mutant: one change of one file of the program, and the tests that should notice it."""

from dataclasses import dataclass
from pathlib import Path

Change = tuple[str, str] | tuple[str, str, str]


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        file: where, relative to the repository.
        old: text that occurs there exactly once.
        new: what stands in its place.
        tests: what should fail, as arguments of pytest; ``path[NAME]`` are one learner's.
        equivalent: why no test can fail; empty where one has to.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def change(self) -> str:
        """The change on one line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{old!r} -> {new!r}"

    def applied(self, tree: Path) -> str:
        """Return the file's text in ``tree`` with the change made.

        Raises:
            ValueError: the text does not occur exactly once.
        """
        text = (tree / self.file).read_text(encoding="utf-8")
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {found} times, expected once")
        return text.replace(self.old, self.new)


def changes(file: str, tests: tuple[str, ...], *of_file: Change) -> tuple[Mutant, ...]:
    """Return the mutants of one file, which the same tests should notice.

    Args:
        file: where, relative to the repository.
        tests: as in `Mutant`, cheap ones first.
        of_file: the old text, the new one, and why it is equivalent if it is.
    """
    return tuple(Mutant(file, old, new, tests, *why) for old, new, *why in of_file)
