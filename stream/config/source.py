"""Settings: where the rows of a task come from, and what the columns there mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stream.config.setting import Settings, at_least, setting
from stream.errors import choose, require

SPLITS = ("train", "validation", "test")
PARQUET_SPLITS = {split: f"{split}.parquet" for split in SPLITS}
DROPPABLE = ("ragged", "unknown_label", "duplicate")


@dataclass
class DialectSpec(Settings):
    r"""How a text file is written; whatever is null is detected and printed.

    Attributes:
        encoding: such as ``utf-8``, ``utf-16``, ``cp1252``.
        delimiter: one or more characters, or ``tab``, ``pipe``, ``semicolon``, ``comma`` or
            ``space``.
        quoting: false if quote characters are text, true if they enclose fields.
        header: false if the first line is a row; columns are then column_1, column_2, ...
        quote: the character that encloses fields, ``"`` if only ``quoting`` is true; inside of
            them it is doubled or escaped.
        escape: the character that makes a following quote, delimiter or line end text, such as
            ``\``; before anything else it is text itself.
        skip: how many lines stand above the table.
        comment: lines that begin with this text are no rows, such as ``#``.
        null_value: a value that stands for no value, such as ``\N``.
    """

    GROUP: ClassVar[str] = "dialect"

    encoding: str | None = None
    delimiter: str | None = None
    quoting: bool | None = None
    header: bool | None = None
    quote: str | None = None
    escape: str | None = None
    skip: int | None = setting(None, at_least(0))
    comment: str | None = None
    null_value: str | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless each is usable, and they fit each other."""
        super().__post_init__()
        for name in ("quote", "escape"):
            char = getattr(self, name)
            require(
                char is None or (len(char) == 1 and char.isascii() and char not in "\r\n\0"),
                f"dialect.{name} must be one ASCII character that ends no line, got {char!r}",
            )
        require(
            self.quote is None or self.quoting is not False,
            f"dialect.quote={self.quote!r} has no effect with dialect.quoting=false",
        )
        given = [c for c in (self.delimiter, self.quote, self.escape) if c is not None]
        require(
            len(set(given)) == len(given),
            f"dialect: delimiter, quote and escape must differ, got {given}",
        )
        require(
            self.comment is None or (bool(self.comment) and not set(self.comment) & set("\r\n")),
            f"dialect.comment must be text of one line, got {self.comment!r}",
        )


@dataclass
class SourceColumns(Settings):
    r"""What a source's columns mean.

    Attributes:
        numbers_are_indices: whether a number that ``values`` does not map is an index into the
            labels; not on the hub, where copies of a data set number labels differently.
        text: the column of each text field, in the order of the task's fields; a list in the place
            of a column is one field of several columns, joined by a blank; empty ones are left out.
        label: the label column; a ``*`` stands for the rest of a long name. In a span task, the
            column with the texts of the answers.
        start: in a span task, the column with the first character of each answer.
        values: source value -> label name, where they differ (``*`` as above).
        exclude: label values whose rows are dropped on purpose, such as "not sure".
        unescape: whether a backslash and ``n`` in a text stand for a line break, and ``\r\n``,
            ``\"`` and ``\u00e9`` for what they are in a program; so Yelp's and Yahoo's files.
        drop: which rows may be dropped instead of causing an error (`DROPPABLE`).
        group: when splits are made, rows with the same value in this column stay in one split.
        rows: the expected number of rows in each part of the source.
    """

    numbers_are_indices: ClassVar[bool] = True

    text: list[Any] = field(default_factory=list)
    label: str = "label"
    start: str | None = None
    values: dict[str, str] = field(default_factory=dict)
    exclude: list[str] = field(default_factory=list)
    unescape: bool = False
    drop: list[str] = field(default_factory=list)
    group: str | None = None
    rows: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless text, ``drop`` and ``values`` are valid."""
        super().__post_init__()
        for reason in self.drop:
            choose("drop reason", reason, DROPPABLE)
        _check_texts("values", self.values)
        require(bool(self.label), "label must be the name of a column, got ''")
        for columns in self.text_columns:
            require(
                bool(columns) and all(isinstance(column, str) and column for column in columns),
                f"text must be names of columns, or lists of such names, got {self.text}",
            )

    @property
    def text_columns(self) -> list[list[str]]:
        """The columns of each text field; several are joined."""
        return [list(at) if isinstance(at, list | tuple) else [at] for at in self.text]


def _check_texts(what: str, texts: Mapping[str, object]) -> None:
    """Raise UserError unless all values are strings; omegaconf accepts an empty mapping."""
    odd = [f"{name}: {value}" for name, value in texts.items() if not isinstance(value, str)]
    require(not odd, f"{what} must be texts, got {', '.join(odd)}")


@dataclass
class FilesSource(SourceColumns):
    """The files of the task: ``data.root``/``folder``/pattern.

    Attributes:
        folder: a folder below ``data.root``, or an absolute path; ``~`` is the home folder.
        splits: one pattern per split, or one for ``all``; empty means `PARQUET_SPLITS`. (The
            default is empty because Hydra merges a YAML's keys with those of the default.)
        dialect: how delimited text is written.
    """

    folder: str = "."
    splits: dict[str, str] = field(default_factory=dict)
    dialect: DialectSpec = field(default_factory=DialectSpec)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless every split has a pattern."""
        super().__post_init__()
        _check_texts("splits", self.splits)


@dataclass
class HubSource(SourceColumns):
    """The task on the Hugging Face hub.

    Attributes:
        id: the data set, such as ``nyu-mll/glue``; null if it is not on the hub.
        config: the configuration of the data set.
        revision: null is the main branch, whose commit is recorded at the first load; use
            ``refs/convert/parquet`` if main is a loading script.
        splits: split -> name of the split on the hub. Missing splits are taken from train.
        missing: why there is no id, and what to do instead.
    """

    numbers_are_indices: ClassVar[bool] = False

    id: str | None = None
    config: str | None = None
    revision: str | None = None
    splits: dict[str, str] = field(default_factory=dict)
    missing: str | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless every split has a name on the hub."""
        super().__post_init__()
        _check_texts("splits", self.splits)


@dataclass
class GeneratedText(Settings):
    """How the generated version of a task looks.

    Attributes:
        words: the mean number of words per text.
        pool: tasks with the same pool share their texts; null shares none.
    """

    GROUP: ClassVar[str] = "generated"

    words: int = setting(12, at_least(1))
    pool: str | None = None
