"""A mistake that is seen late leaves no folder behind, and no mistake removes what was there."""

import sys
from pathlib import Path

import pytest

from stream.cli.main import main
from stream.errors import UserError
from stream.files.run_folder import FILE_NAME, LOCK, LOG_NAME
from stream.run.interrupt import Interrupted
from stream.run.new_folder import gone_unless_begun, lacking

ENDS = {"mistake": UserError("no such device"), "signal": Interrupted(2), "fault": ValueError()}


@pytest.mark.parametrize(
    ("there", "also", "end", "left"),
    [
        ("", [], "mistake", []),
        ("", [], "signal", []),
        ("", [], "fault", ["day", "day/run", f"day/run/{LOCK}", f"day/run/{LOG_NAME}"]),
        ("day", [], "mistake", ["day"]),
        ("day/run", [], "mistake", ["day", "day/run", f"day/run/{LOCK}", f"day/run/{LOG_NAME}"]),
        ("", ["day/other"], "mistake", ["day", "day/other"]),
        (
            "",
            [f"day/run/{FILE_NAME}"],
            "mistake",
            ["day", "day/run", *(f"day/run/{n}" for n in (LOCK, FILE_NAME, LOG_NAME))],
        ),
    ],
)
def test_what_a_start_made_is_gone(
    there: str, also: list[str], end: str, left: list[str], tmp_path: Path
) -> None:
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    run = tmp_path / "day" / "run"
    made = lacking(run)
    run.mkdir(parents=True, exist_ok=True)
    for name in (f"day/run/{LOCK}", f"day/run/{LOG_NAME}", *also):
        (tmp_path / name).touch()
    with pytest.raises(type(ENDS[end])), gone_unless_begun(made):
        raise ENDS[end]
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == sorted(left)


def test_the_command_line_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["task-stream"])
    given = ["task=[cola]", "backbone=tiny", "tracking=none", "display=quiet", "device=cuda:99"]
    with pytest.raises(SystemExit, match="2"):
        main(["run", *given])
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    with pytest.raises(SystemExit, match="2"):
        main(["run", *given, "hydra.run.dir=mine"])
    assert (tmp_path / "mine").is_dir()
