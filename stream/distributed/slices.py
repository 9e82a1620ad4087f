"""Which rows of a batch each rank learns: neighbouring ones, and of everything equally many.

N rows, R ranks. All ranks get ceil(N / R) rows, so that their tensors have the same shapes; a rank
whose own are fewer gets its last one again, which weighs nothing there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """What one rank has of N rows.

    Attributes:
        rows: their places among the N, ceil(N / R) of them.
        own: how many of them count; the others come last.
        whole: N.
        ranks: R.
    """

    rows: tuple[int, ...]
    own: int
    whole: int
    ranks: int

    @classmethod
    def of(cls, whole: int, rank: int, ranks: int) -> "Slice":
        """Return what ``rank`` of ``ranks`` has of ``whole`` rows, of which there is one at least.

        >>> Slice.of(3, 0, 2), Slice.of(3, 1, 2)
        (Slice(rows=(0, 0), own=1, whole=3, ranks=2), Slice(rows=(1, 2), own=2, whole=3, ranks=2))
        """
        start, stop = whole * rank // ranks, whole * (rank + 1) // ranks
        last = max(stop - 1, 0)
        rows = (min(row, last) for row in range(start, start + rows_each(whole, ranks)))
        return cls(tuple(rows), stop - start, whole, ranks)

    @property
    def is_even(self) -> bool:
        """Whether all rows of all ranks count."""
        return self.whole % self.ranks == 0

    @property
    def share(self) -> float:
        """N / R: a sum over a rank's own rows, divided by it, has the mean over N as its mean."""
        return self.whole / self.ranks


def rows_each(whole: int, ranks: int) -> int:
    """Return how many rows of ``whole`` each of ``ranks`` gets."""
    return -(-whole // ranks)
