"""From a user's file to a task: read, choose text and label, and read the task as a run would."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from stream.config.task import DialectSpec, FilesSource, TaskSpec
from stream.config.task_yaml import read_task, write_task
from stream.data.inspecting.columns import Column, describe
from stream.data.inspecting.labels import Target, target_of
from stream.data.inspecting.roles import Choice, choose_label, choose_text, named
from stream.data.prepare.splits import ALL, prepare_splits
from stream.data.sources.files import read_files
from stream.data.table import SourceTable
from stream.data.task import LoadedTask
from stream.errors import require


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
        source: the file's rows.
        columns: all its columns.
        text: the text column, or both of a pair.
        label: the label column.
        target: what the label means.
        yaml: the YAML of the task.
        loaded: the rows that the YAML gives, read as a run reads them.
        spec: the task's specification, read from the YAML.
    """

    source: SourceTable
    columns: tuple[Column, ...]
    text: Choice
    label: Choice
    target: Target
    yaml: str
    loaded: LoadedTask
    spec: TaskSpec

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
            folder per class, or a pattern.
        name: the name of the task.
        wanted: what is known about the file.

    Raises:
        UserError: the file cannot be read, or has no text and no label.
    """
    folder, pattern = split_path(path)
    source = read_files(folder, pattern, wanted.dialect)
    _require_rows(source)
    json_texts = source.provenance.get("json_text", "").split(", ")
    columns = tuple(
        describe(column, source.table.column(column), is_json=column in json_texts)
        for column in source.table.column_names
    )
    text, label = _choose(columns, wanted, path)
    target = target_of(label.columns[0], wanted.target)
    place = FilesSource(folder=str(folder), splits={ALL: pattern}, dialect=replace(wanted.dialect))
    written = write_task(name, _spec(name, place, source, (text, label), target))
    spec = read_task(written, name)
    loaded = prepare_splits(name, spec, spec.files, {ALL: source})
    return Inspection(source, columns, text, label, target, written, loaded, spec)


def split_path(path: Path) -> tuple[Path, str]:
    """Return the nearest folder above a path, and the rest of the path."""
    whole = Path(os.path.abspath(path.expanduser()))  # links are not followed: names matter
    folder = next(parent for parent in whole.parents if parent.is_dir())
    return folder, whole.relative_to(folder).as_posix()


def _require_rows(source: SourceTable) -> None:
    """Raise UserError unless a file has rows with as many fields as its header."""
    if source.ragged and not source.table.num_rows:
        first = source.ragged[0]
        require(
            condition=False,
            message=f"{source.where}: no row has {first.expected} fields as the header does: "
            f"{len(source.ragged):,} have another number (line {first.line}: {first.found})",
        )
    require(source.table.num_rows > 0, f"{source.where} has no rows")


def _choose(columns: Sequence[Column], wanted: Wanted, path: Path) -> tuple[Choice, Choice]:
    """Return the text and the label: what the user named, or the most likely columns."""
    asked = named(columns, [*wanted.text, *([wanted.label] if wanted.label else [])], path)
    require(
        len(wanted.text) <= 2, f"a task has one text or two, got --text {len(wanted.text)} times"
    )
    left = [column for column in columns if column not in asked]
    label = Choice(asked[-1:], "as asked") if wanted.label else choose_label(left, path)
    if wanted.text:
        return Choice(asked[: len(wanted.text)], "as asked"), label
    return choose_text([column for column in left if column not in label.columns], path), label


def _spec(
    name: str, place: FilesSource, source: SourceTable, roles: tuple[Choice, Choice], target: Target
) -> TaskSpec:
    """Return the specification of the task.

    Args:
        name: the task's name.
        place: where the file is and how it is written.
        source: its rows.
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
        label=label.names[0],
        values={value: value for value in labels or []} if mapped else {},
        exclude=target.exclude,
        drop=["ragged"] if source.ragged else [],
    )
    return TaskSpec(
        title=name,
        kind="single" if len(text.columns) == 1 else "pair",
        labels=labels,
        score_range=target.score_range,
        metric="accuracy" if labels is not None else "spearman",
        source=source.where,
        files=files,
    )
