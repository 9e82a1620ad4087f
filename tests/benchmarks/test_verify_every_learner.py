"""The script that verifies a run of every learner is red for one wrong check."""

import pytest

from benchmarks.stress import verify as script
from stream.run.verify import Check


def test_one_wrong_check_is_red_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"lora": [Check("a", "1", "1")], "adapter": [Check("b", "1", "2"), Check("c", "", "")]}
    monkeypatch.setattr(script, "checks_of", lambda name, settings: found[name])
    assert script.main(["--only", "lora,adapter"]) == 1
    out = capsys.readouterr().out
    assert "b: recorded 1, now 2" in out
    assert "learners: 2; 2 of 3 checks agree" in out
