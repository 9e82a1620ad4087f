"""YAML files of another form: a line that names the file and the setting, in the words of YAML."""

import re
from pathlib import Path

import pytest

from stream.config import choices
from stream.config.compose import searched_too
from stream.config.data import StreamConfig
from stream.config.paths import from_home
from stream.config.task import TaskSpec
from stream.errors import UserError
from stream.run.settings import compose_settings

TASK = """own:
  title: Own
  kind: single
  labels: [bad, good]
  metric: accuracy
  source: made
  files:
    text: [text]
"""
NAMES = "must be names with values"


def written(folder: Path, group: str, text: str) -> Path:
    (folder / group).mkdir()
    (folder / group / "own.yaml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("[bad, good]", "bad", "labels: must be a list"),
        ("[bad, good]", "{bad: good}", "labels: must be a list"),
        ("[bad, good]", "[bad, null]", "labels[1]: needs a value, got null"),
        ("[text]", "text", "files.text: must be a list"),
        ("[text]", "[text]\n    values: [a]", f"files.values: {NAMES}"),
        ("[text]", "[text]\n    values: {1: good}", "files.values.1: the name 1 needs quotes"),
        ("[text]", "[text]\n    splits: a.csv", f"files.splits: {NAMES}"),
        ("[text]", "[text]\n    dialect: comma", f"files.dialect: {NAMES}"),
        (
            "[text]",
            "[text]\n    rows: {train: x}",
            "files.rows.train: must be a whole number, got 'x'",
        ),
        ("files:\n    text: [text]", "files: null", f"files: {NAMES}"),
        ("title: Own", "title: null", "title: needs a value, got null"),
        ("title: Own", "title: &own [*own]", "a value in it contains itself"),
    ],
)
def test_a_task_of_another_form(tmp_path: Path, right: str, wrong: str, told: str) -> None:
    folder = written(tmp_path, "task", TASK.replace(right, wrong))
    with pytest.raises(UserError, match=re.escape(told)) as caught:
        compose_settings(["task=[own]", searched_too(folder)])
    assert str(folder / "task/own.yaml") in str(caught.value)
    assert told in choices.tasks(folder).broken["own"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tasks: [sst2, rte]\nshared_labels: [sst2, rte]", "shared_labels[0]: must be a list"),
        ("tasks: [clinc150]\ncut: [clinc150]", f"cut: {NAMES}"),
        ("tasks: [clinc150]\ncut: {clinc150: 10}", f"cut.clinc150: {NAMES}, such as"),
        ("orders: {1: [sst2, rte]}", "orders.1: the name 1 needs quotes"),
        ("3", f"{NAMES}, such as {{a: b}}, at its top too"),
        ("orders: {given: [sst2, rte]}", "order 'given' is one of every stream"),
    ],
)
def test_a_stream_of_another_form(tmp_path: Path, text: str, told: str) -> None:
    folder = written(tmp_path, "stream", text)
    with pytest.raises(UserError, match=re.escape(told)):
        compose_settings(["stream=own", searched_too(folder)])
    assert told in choices.streams(folder).broken["own"]


def test_a_stream_is_called_as_its_file(tmp_path: Path) -> None:
    folder = written(tmp_path, "stream", "orders: {there: [sst2, rte], back: [rte, sst2]}")
    config, _ = compose_settings(["stream=own", "order=back", searched_too(folder)])
    assert config.stream_name == "own"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3", "own.yaml: must be names with values"),
        ("defaults: [adapter, lora, _self_]", "describes another thing"),
        (
            "defaults: [adapter, _self_]\nsize: big",
            "learner.size: must be a whole number, got 'big'",
        ),
        ("defaults: [adapter, _self_]\nlr: fast", "learner.lr: must be a number, got 'fast'"),
    ],
)
def test_a_preset_of_another_form(tmp_path: Path, text: str, told: str) -> None:
    folder = written(tmp_path, "learner", text)
    with pytest.raises(UserError, match=re.escape(told)):
        compose_settings(["learner=own", searched_too(folder)])


def test_an_experiment_without_its_first_line(tmp_path: Path) -> None:
    folder = written(tmp_path, "experiment", "training: {epochs: 2}")
    with pytest.raises(UserError, match="begins with '# @package _global_'"):
        compose_settings(["experiment=own", searched_too(folder)])


def test_a_damaged_file_breaks_no_listing(tmp_path: Path) -> None:
    groups = (choices.tasks, choices.streams, choices.presets, choices.backbones)
    for group in ("task", "stream", "learner", "backbone", "experiment", "protocol"):
        (tmp_path / group).mkdir()
        for name, text in {"a": "3", "b": "- x", "c": "x: [1", "d": "x: &a [*a]"}.items():
            (tmp_path / group / f"{name}.yaml").write_text(text)
    for read in (*groups, choices.experiments):
        broken = read(tmp_path).broken
        assert {"a", "b", "c", "d"} >= broken.keys() >= {"a", "b", "c"}
        assert not [reason for reason in broken.values() if "\n" in reason]


SPEC = {"title": "t", "kind": "single", "labels": ["a", "b"], "metric": "accuracy", "source": "s"}


@pytest.mark.parametrize("scores", [[0.0], [0.0, 1.0, 2.0], [0.0, float("inf")], [1.0, 1.0]])
def test_a_range_is_two_numbers_that_rise(scores: list[float]) -> None:
    with pytest.raises(UserError, match="score_range must be the lowest and the highest score"):
        TaskSpec(**{**SPEC, "labels": None, "score_range": scores, "metric": "pearson"})


def test_labels_that_nothing_has_in_common_are_not_shared() -> None:
    one, other = TaskSpec(**SPEC), TaskSpec(**{**SPEC, "labels": ["c", "d"]})
    part = TaskSpec(**{**SPEC, "labels": ["b", "c"]})
    stream = StreamConfig(tasks=["x", "y"], shared_labels=[["x", "y"]])
    stream.check_shared({"x": one, "y": part})
    stream.check_shared({"x": one})
    with pytest.raises(UserError, match="x and y have no label in common"):
        stream.check_shared({"x": one, "y": other})


def test_a_home_folder_that_is_not_there() -> None:
    with pytest.raises(UserError, match="no home folder of that name"):
        from_home("~nobody-of-that-name/x")
    assert from_home("~/x") == Path.home() / "x"
    assert from_home("a/~") == Path("a/~")


def test_a_task_without_columns_of_text_has_no_files() -> None:
    with pytest.raises(UserError, match=r"cannot be read with data=files: its YAML names no col"):
        compose_settings(["task=[sst2]", "data=files", "data.root=.", "task.sst2.files.text=[]"])
