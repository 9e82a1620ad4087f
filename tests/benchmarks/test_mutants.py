"""The table of mutants is about the code as it stands; what runs them is benchmarks/stress."""

from pathlib import Path

import pytest

from benchmarks import ROOT
from benchmarks.stress.mutants import MUTANTS, Mutant


def test_every_mutant_is_one_place_of_the_present_code() -> None:
    changed = [mutant.applied(ROOT) for mutant in MUTANTS]  # raises where a text is not there once
    assert len(set(changed)) == len(MUTANTS) >= 120


def test_tests_that_should_notice_exist() -> None:
    paths = {test.partition("[")[0] for mutant in MUTANTS for test in mutant.tests}
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("old", ["absent", "twice"])
def test_a_text_that_is_not_there_once_is_an_error(old: str, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("twice = 1\ntwice = 2\n")
    with pytest.raises(ValueError, match="expected once"):
        Mutant("file.py", old, "", ()).applied(tmp_path)
