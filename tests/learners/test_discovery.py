"""A learner in somebody's own package is found through its entry point."""

import sys
from pathlib import Path

import pytest

from stream import learners
from stream.data.task import Task
from stream.errors import UserError
from tests.conftest import Stream

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


def test_it_is_found_under_the_name_of_its_entry_point(
    package: Path, three_tasks: list[Task]
) -> None:
    package.write_text("[task_stream.learners]\nshifts = somebodys_methods:Shifts\n")
    found = learners._find()
    assert found.keys() - learners.LEARNERS.keys() == {"shifts"}
    run = Stream(found["shifts"](), three_tasks)
    assert run.learner.name == "shifts"
    run.run()
    assert run.matrix.memory() == (2, 2)
    assert run.learner.num_trained(three_tasks[2]) == 5 * 16 + 17


def test_a_name_that_is_taken_is_an_error(package: Path) -> None:
    package.write_text("[task_stream.learners]\nadapter = somebodys_methods:Shifts\n")
    with pytest.raises(UserError, match="'adapter'"):
        learners._find()
