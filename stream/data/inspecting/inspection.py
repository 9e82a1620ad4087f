"""From a user's file to a task: read, choose text and label, and read the task as a run would."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import numpy as np

from stream.config.source import DialectSpec, FilesSource
from stream.config.task import TaskSpec
from stream.config.task_yaml import read_task, write_task
from stream.data.inspecting.columns import Column, describe
from stream.data.inspecting.labels import Target, target_of
from stream.data.inspecting.parts import Parts, parts_of
from stream.data.inspecting.roles import Choice, choose_label, choose_text, named
from stream.data.prepare.splits import ALL, prepare_splits
from stream.data.sources.files import read_files
from stream.data.table import SourceTable
from stream.data.task import LoadedTask
from stream.errors import require

KIND_OF = {1: "single", 2: "pair"}  # by the number of texts
LABEL_PATTERNS = {"???": "[?][?][?]*"}  # a column's name that OmegaConf takes for a missing value


@dataclass(frozen=True)
class Wanted:
    """What the user said about a file.

    Attributes:
        text: the text columns; none are guessed.
        label: the label column; None guesses it.
        target: ``class`` or ``score``; None decides by the values.
        dialect: the known parts of a delimited file's dialect.
    """

    text: tuple[str, ...] = ()
    label: str | None = None
    target: str | None = None
    dialect: DialectSpec = field(default_factory=DialectSpec)


@dataclass(frozen=True)
class Inspection:
    """A file, and the task that was made of it.

    Attributes:
        parts: where it is, and its splits.
        sources: the rows of each split, or of ``all``.
        left_out: of each split that is not used, why.
        columns: all columns.
        text: the text columns, in reading order.
        label: the label column.
        target: what the label means.
        yaml: the YAML of the task.
        loaded: the rows that the YAML gives, read as a run reads them.
        spec: the task's specification, read from the YAML.
    """

    parts: Parts
    sources: Mapping[str, SourceTable]
    left_out: Mapping[str, str]
    columns: tuple[Column, ...]
    text: Choice
    label: Choice
    target: Target
    yaml: str
    loaded: LoadedTask
    spec: TaskSpec

    @property
    def num_rows(self) -> int:
        """The number of rows that were read, those with a wrong number of fields included."""
        return sum(s.table.num_rows + len(s.ragged) for s in self.sources.values())

    @property
    def empty_splits(self) -> list[str]:
        """The splits without a row, without which nothing can be run."""
        return [split for split, rows in self.loaded.rows.items() if not len(rows)]

    @property
    def label_counts(self) -> Counter[str]:
        """The number of rows that a run gets of each label; empty for scores."""
        names = self.spec.labels or []
        labels = [rows.labels for rows in self.loaded.rows.values()]
        codes = np.concatenate(labels).astype(np.int64) if names else np.empty(0, np.int64)
        found = np.bincount(codes, minlength=len(names)).tolist()
        return Counter(dict(zip(names, found, strict=True)))


def inspect_file(path: Path, name: str, wanted: Wanted) -> Inspection:
    """Read a file and make a task of it.

    Args:
        path: whatever the ``files`` source reads: a file, ``archive.zip/member``, a folder with one
            folder per class, or a pattern; also a folder or archive with a file per split.
        name: the name of the task.
        wanted: what is known about the file.

    Raises:
        UserError: the file cannot be read, or has no text and no label.
    """
    parts = parts_of(path)
    read = {
        split: read_files(parts.folder, pattern, wanted.dialect)
        for split, pattern in parts.patterns.items()
    }
    for source in read.values():
        _require_rows(source)
    described = {split: _described(source) for split, source in read.items()}
    main = next(iter(read))  # train or all
    text, label = _choose(tuple(described[main].values()), wanted, path)
    _require_texts(read, main, text)
    left_out = _without_labels(described, main, label.names[0])
    columns = _over_splits([described[split] for split in read if split not in left_out])
    text, label = _joined(text, columns), _joined(label, columns)
    target = target_of(label.columns[0], wanted.target)
    # A train split alone is divided like any other file.
    splits = (
        {s: s for s in read if s not in left_out} if len(read) > len(left_out) + 1 else {main: ALL}
    )
    sources = {splits[split]: read[split] for split in splits}
    place = FilesSource(
        folder=str(parts.folder),
        splits={splits[split]: parts.patterns[split] for split in splits},
        dialect=replace(wanted.dialect),
    )
    written = write_task(name, _spec(name, place, sources, (text, label), target))
    spec = read_task(written, name)
    loaded = prepare_splits(name, spec, spec.files, sources)
    return Inspection(
        *(parts, sources, left_out, tuple(columns.values()), text, label, target),
        *(written, loaded, spec),
    )


def _over_splits(described: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    """Return each column of the first split, with the rows of the others that have it."""
    return {
        name: reduce(Column.joined, (columns[name] for columns in described if name in columns))
        for name in described[0]
    }


def _described(source: SourceTable) -> dict[str, Column]:
    """Return what each column of a table contains, by name."""
    json_texts = source.provenance.get("json_text", "").split(", ")
    return {
        column: describe(column, source.table.column(column), is_json=column in json_texts)
        for column in source.table.column_names
    }


def _joined(choice: Choice, columns: Mapping[str, Column]) -> Choice:
    """Return a choice with the columns of all splits."""
    other = choice.next and columns[choice.next.name]
    return replace(choice, columns=tuple(columns[name] for name in choice.names), next=other)


def _require_rows(source: SourceTable) -> None:
    """Raise UserError unless a file has rows with as many fields as its header."""
    if source.ragged and not source.table.num_rows:
        first = source.ragged[0]
        require(
            condition=False,
            message=f"{source.where}: no row has {first.expected} fields as the header does: "
            f"{len(source.ragged):,} have another number (line {first.line}: {first.found})",
        )
    require(source.table.num_rows > 0, f"{source.where} has a header but no rows")


def _require_texts(sources: Mapping[str, SourceTable], main: str, text: Choice) -> None:
    """Raise UserError unless each split has the text columns."""
    for source in sources.values():
        there = source.table.column_names
        missing = [name for name in text.names if name not in there]
        require(
            not missing,
            f"{source.where} has no column {missing and missing[0]!r}, as {sources[main].where} "
            f"does; it has {', '.join(there)} (is its first line a row? then say --no-header)",
        )


def _without_labels(
    described: Mapping[str, Mapping[str, Column]], main: str, label: str
) -> dict[str, str]:
    """Return why splits are not used: what is published to be submitted has no labels."""
    known = described[main][label]
    found = {}
    for split, columns in described.items():
        column = columns.get(label)
        if column is None:
            found[split] = f"it has no column {label!r}"
        elif not column.counts:
            found[split] = f"its column {label!r} is blank"
        elif not known.are_mostly_numbers and not column.counts.keys() & known.counts.keys():
            found[split] = f"it has none of the labels of {main}"
        elif set(column.counts) == {"-1"} and "-1" not in known.counts:
            found[split] = "all of its labels are -1"
    return found


def _choose(columns: Sequence[Column], wanted: Wanted, path: Path) -> tuple[Choice, Choice]:
    """Return the text and the label: what the user named, or the most likely columns."""
    asked = named(columns, [*wanted.text, *([wanted.label] if wanted.label else [])], path)
    left = [column for column in columns if column not in asked]
    label = Choice(asked[-1:], "as asked") if wanted.label else choose_label(left, path)
    if wanted.text:
        return Choice(asked[: len(wanted.text)], "as asked"), label
    return choose_text([column for column in left if column not in label.columns], path), label


def _spec(
    name: str,
    place: FilesSource,
    sources: Mapping[str, SourceTable],
    roles: tuple[Choice, Choice],
    target: Target,
) -> TaskSpec:
    """Return the specification of the task.

    Args:
        name: the task's name.
        place: where the file is and how it is written.
        sources: its rows, by split.
        roles: the text and the label.
        target: what the label means.
    """
    text, label = roles
    labels = target.labels
    # Other values than texts are named by their texts; the loader maps them.
    mapped = labels is not None and not label.columns[0].is_string
    files = replace(
        place,
        text=text.names,
        label=LABEL_PATTERNS.get(label.names[0], label.names[0]),
        values={value: value for value in labels or []} if mapped else {},
        exclude=target.exclude,
        drop=["ragged"] if any(source.ragged for source in sources.values()) else [],
    )
    return TaskSpec(
        title=name,
        kind=KIND_OF.get(len(text.columns), "multi"),
        labels=labels,
        score_range=target.score_range,
        metric="accuracy" if labels is not None else "spearman",
        source=next(iter(sources.values())).where if len(sources) == 1 else place.folder,
        files=files,
    )
