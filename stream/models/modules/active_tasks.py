"""Which tasks' modules an encoder that holds those of all tasks computes with now."""

from dataclasses import dataclass, field


@dataclass
class Use:
    """Which tasks' modules are read now, the served one's last; shared by copies of the encoder."""

    names: list[str] = field(default_factory=list)
    combined: bool = True
    """Whether they are combined; otherwise the last is read alone."""

    def __deepcopy__(self, memo: object) -> "Use":
        """Return the same object."""
        return self
