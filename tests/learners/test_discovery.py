"""Which files and entry points are learners, and what becomes of those that are broken."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import make_dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import pytest
import torch

from stream import learners
from stream.config import members
from stream.config.compose import register
from stream.data.task import Task
from stream.errors import UserError
from stream.learners.base import Learner
from stream.learners.discovery import Learners, find_learners
from stream.run.settings import compose_settings
from tests.builders import Stream

MODULE = '''
"""Trains LayerNorm biases."""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags


@dataclass
class Shifts(Learner):
    """Train the shift of every LayerNorm."""

    tags: ClassVar[Tags] = Tags(parameter_isolation=True)

    def trains(self, name: str) -> bool:
        return name.endswith("LayerNorm.bias")
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package, as pip leaves it."""
    (tmp_path / "somebodys_methods.py").write_text(MODULE)
    facts = tmp_path / "somebodys_methods-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: somebodys-methods\nVersion: 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "somebodys_methods", raising=False)
    return facts / "entry_points.txt"


def found_in(*entries: EntryPoint, package: ModuleType = learners) -> Learners:
    """What a package and entry points define."""
    return find_learners(package, entries)


def test_it_is_found_under_the_name_of_its_entry_point(
    package: Path, three_tasks: list[Task]
) -> None:
    package.write_text("[task_stream.learners]\nshifts = somebodys_methods:Shifts\n")
    found = found_in(*entry_points(group=learners.ENTRY_POINTS))
    assert found.keys() - learners.LEARNERS.keys() == {"shifts"}
    run = Stream(found["shifts"](), three_tasks)
    assert run.learner.name == "shifts"
    run.run()
    assert run.matrix.memory() == (2, 2)
    assert run.learner.num_trained(three_tasks[2]) == 5 * 16 + 17


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("adapter", "somebodys_methods:Shifts", "two learners are called 'adapter'.* rename one"),
        ("other", "somebodys_methods:Shift", "entry point|has no attribute 'Shift'"),
        ("other", "nobodys_methods:Shifts", "No module named 'nobodys_methods'"),
        ("other", "somebodys_methods:Tags", "is no class that derives from"),
        ("other", "stream.learners.base:Learner", "is no class that derives from"),
    ],
)
def test_an_entry_point_that_is_no_learner_breaks_only_its_name(
    package: Path, name: str, value: str, message: str
) -> None:
    found = found_in(EntryPoint(name, value, learners.ENTRY_POINTS))
    assert learners.LEARNERS.keys() - found.keys() <= {name}
    with pytest.raises(UserError, match=message):
        found[name]


BROKEN = {
    "syntax": ("x = 1\ndef f(:\n", r"syntax\.py, line 2: SyntaxError"),
    "imports": ("\nimport no_such_module\n", r"imports\.py, line 2: ModuleNotFoundError"),
    "raises": ("\n\n1 / 0\n", r"raises\.py, line 3: ZeroDivisionError"),
    "exits": ("raise SystemExit(3)\n", r"exits\.py, line 1: SystemExit"),
    "two": (
        MODULE + MODULE.replace("class Shifts", "class Others"),
        r"two\.py defines more than one learner: Shifts, Others",
    ),
    "plain": (
        MODULE.replace("@dataclass", "").replace("    tags", "    n: int = 1\n    tags"),
        "@dataclass",
    ),
}
WHOLE = {
    "good": MODULE,
    "helper": "def double(x):\n    return 2 * x\n",
    "derived": MODULE.replace("class Shifts", "class _Base") + "\n\nclass Last(_Base):\n    pass\n",
}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learners]:
    """What is found in a package of which most files are broken."""
    folder = tmp_path_factory.mktemp("several") / "many_methods"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in WHOLE.items():
        (folder / f"{name}.py").write_text(text)
    for name, (text, _) in BROKEN.items():
        (folder / f"{name}.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder.parent))
        yield found_in(package=importlib.import_module("many_methods"))


def test_a_broken_file_breaks_only_itself(several: Learners) -> None:
    assert {name: kind.__name__ for name, kind in several.items()} == {
        "good": "Shifts",
        "derived": "Last",
    }
    assert several.broken.keys() == BROKEN.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_asked_for_says_where_and_why_in_one_line(
    name: str, several: Learners, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=BROKEN[name][1]) as caught:
        several[name]
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(members, "_UNUSABLE", {})
    members.unusable("learner", several.broken)
    with pytest.raises(UserError, match=BROKEN[name][1]):
        compose_settings([f"learner={name}", "task=[rte]"])


def test_the_list_of_learners_says_what_is_broken(
    several: Learners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "_UNUSABLE", {})
    members.unusable("learner", several.broken)
    with pytest.raises(UserError, match=r"Valid: adapter, .*, syntax \(broken: .*line 2"):
        compose_settings(["learner=none_such", "task=[rte]"])


def test_a_field_that_no_setting_can_be_breaks_only_its_learner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "_UNUSABLE", {})
    kind = make_dataclass("Odd", [("size", torch.Tensor | None, None)], bases=(Learner,))
    register({"learner": {"odd": kind}})
    with pytest.raises(UserError, match=r"learner 'odd' cannot be used: .*Tensor"):
        compose_settings(["learner=odd", "task=[rte]"])


def test_unknown_names_have_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'adapter'"):
        learners.LEARNERS["adaptor"]
