"""Tests of tasks that are composed as they were read: they become what OmegaConf makes of them."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from stream.config.composition import Composition
from stream.config.paths import conf_folder
from stream.config.plain import NotPlainError, part
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.config.task_node import TaskNode
from stream.errors import NeededError, UserError

PLAIN = 'title: "t"\nkind: single\nlabels: ["a", "b"]\nmetric: accuracy\nsource: "s"\n'
OWN = "files:\n  text: [words]\n  rows: {train: 3}\nscore_range: null\n"


def of_omegaconf(values: Any) -> DictConfig:
    """Return the settings of a task as OmegaConf has them."""
    merged = OmegaConf.merge(OmegaConf.structured(TaskSpec), values)
    assert isinstance(merged, DictConfig)
    return merged


def raw(text: str) -> dict[str, Any]:
    """Return the values of YAML."""
    values = OmegaConf.to_container(OmegaConf.create(text))
    assert isinstance(values, dict)
    return values  # type: ignore[return-value]


def composed(folder: Path, *overrides: str, **files: str) -> Composition:
    """Compose tasks from files of their own."""
    (folder / "task").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        below = "".join(f"  {line}\n" for line in text.splitlines())
        (folder / "task" / f"{name}.yaml").write_text(f"{name}:\n{below}", encoding="utf-8")
    search = f"hydra.searchpath=[file://{folder}]"
    asked = f"task=[{','.join(files)}]"
    return Composition.of(conf_folder(), [search, asked, *overrides])


@pytest.mark.parametrize(
    "file", sorted((conf_folder() / "task").glob("*.yaml")), ids=lambda f: f.stem
)
def test_every_task_becomes_what_omegaconf_makes_of_it(file: Path) -> None:
    values = raw(file.read_text(encoding="utf-8"))[file.stem]
    assert part(TaskSpec, values).made() == OmegaConf.to_object(of_omegaconf(values))


def test_composed_tasks_are_not_taken_apart(tmp_path: Path) -> None:
    composition = composed(tmp_path, "seed=3", one=PLAIN, two=PLAIN + OWN)
    spec = composition.run_config().task["two"]
    assert spec.files == FilesSource(text=["words"], rows={"train": 3})
    assert all(node.is_unread for node in composition.settings.task.values())


def test_who_looks_into_a_task_finds_all_its_nodes() -> None:
    values = raw(PLAIN + OWN)
    node, expected = TaskNode.of(values), of_omegaconf(values)
    assert copy.deepcopy(node).is_unread
    assert node.files.rows.train == 3
    assert not node.is_unread
    for same in (node, copy.deepcopy(node), TaskNode.of(values), pickle.loads(pickle.dumps(node))):
        assert same == expected
        assert OmegaConf.to_yaml(same) == OmegaConf.to_yaml(expected)
    node.files.folder = "elsewhere"
    changed: Any = OmegaConf.to_object(node)
    assert changed.files.folder == "elsewhere"
    assert TaskNode.of(values).files.folder == "."


def test_overrides_and_interpolations_reach_into_tasks(tmp_path: Path) -> None:
    overrides = ["task.one.files.folder=there", "cache=${task.two.title}"]
    config = composed(tmp_path, *overrides, one=PLAIN, two=PLAIN).run_config()
    assert (config.task["one"].files.folder, config.cache) == ("there", "t")
    assert config.task["two"].files.folder == "."
    refers = PLAIN.replace('"s"', '"${seed} ${.title}"')
    assert composed(tmp_path / "b", one=refers).run_config().task["one"].source == "0 t"


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("labels: [0, 1]", {"labels": ["0", "1"]}),
        ("labels: null\nscore_range: [0, 5]", {"labels": None, "score_range": [0.0, 5.0]}),
        ('version: "2"', {"version": 2}),
    ],
)
def test_values_are_converted_as_omegaconf_does(
    tmp_path: Path, text: str, change: dict[str, Any]
) -> None:
    kept = [line for line in PLAIN.splitlines() if not text.startswith(line.partition(":")[0])]
    more = "metric: spearman" if "score_range" in text else ""
    lines = [line for line in kept if not (more and line.startswith("metric"))]
    spec = composed(tmp_path, one="\n".join([*lines, text, more])).run_config().task["one"]
    assert {name: getattr(spec, name) for name in change} == change


def test_what_a_task_lacks_or_should_not_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(NeededError, match="task 'one' needs metric"):
        composed(tmp_path, one=PLAIN.replace("metric: accuracy\n", "")).run_config()
    with pytest.raises(UserError, match=r"one\.yaml: unknown setting 'file'.*'files'"):
        composed(tmp_path, one=PLAIN + "file: {}", two=PLAIN)
    with pytest.raises(NotPlainError):
        part(TaskSpec, {"title": "without the rest"})


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    assert composed(tmp_path, one=PLAIN).run_config().task["one"].title == "t"
    longer = PLAIN.replace('"t"', '"another"')
    assert composed(tmp_path, one=longer).run_config().task["one"].title == "another"
