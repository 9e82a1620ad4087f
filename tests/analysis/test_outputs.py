"""Where commands write, what they say when they cannot, and the JSON that they print."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from stream.errors import UserError
from stream.run.verify import Check
from tests.analysis.made_runs import METRICS, record_of, write

SAID = {
    "a folder": "is a folder: name a file, such as",
    "below a file": "is not a folder: name another path",
    "not writable": "is not writable: change its permissions",
    "disk full": "cannot be written: no space left on device",
}
OPTIONS = ("compare --csv", "compare --markdown", "compare --latex", "report --out")
FOLDERS = ("figures --out", "layer-ranges --out")
CASES = [(option, kind) for option in OPTIONS for kind in SAID]
CASES += [(option, kind) for option in FOLDERS for kind in ("below a file", "not writable")]
CASES += [(FOLDERS[0], "disk full")]  # the other one needs weights first


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("runs") / "run", record_of())


def unusable(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path that cannot be written in some way."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    if kind == "a folder":
        (tmp_path / "taken").mkdir()
    if kind == "below a file":
        (tmp_path / "file").write_text("")
        return tmp_path / "file" / "new" / "taken"
    if kind == "not writable":  # root may write everywhere
        monkeypatch.setattr("analysis.outputs.os.access", lambda *_: False)
    if kind == "disk full":
        for module in ("analysis.outputs", "analysis.report.write", "stream.report.drawing"):
            monkeypatch.setattr(f"{module}.write_atomic", full)
    return tmp_path / "taken"


@pytest.mark.parametrize(("option", "kind"), CASES)
def test_what_cannot_be_written_is_one_line_that_names_option_and_path(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    kind: str,
) -> None:
    path = unusable(kind, tmp_path, monkeypatch)
    command, name = option.split()
    tasks = {"layer-ranges": ["task=cola"], "figures": ["--only", "average"]}.get(command, [])
    assert main([command, str(run), *tasks, name, str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {name} {path}")
    assert SAID[kind] in line
    assert not path.exists() or not any(path.iterdir())


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", ["results.json", "rows.jsonl"])
def test_no_file_of_a_run_is_written_over(
    run: Path, capsys: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    command, given = option.split()
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    assert main([command, str(run), given, str(run / name)]) == 2
    assert "is a file of a run: name another file" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


def test_two_options_are_two_files(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = ["--csv", str(tmp_path / "x"), "--latex", str(tmp_path / "y" / ".." / "x")]
    assert main(["compare", str(run), *same]) == 2
    assert "--csv and --latex name the same file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_folders_that_do_not_exist_are_made(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "runs.csv"
    assert main(["compare", str(run), "--csv", str(path)]) == 0
    assert path.exists()


# --- JSON


def test_compare_prints_json_with_every_documented_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = {("finetune", 1): 0.3, ("finetune", 2): 0.5, ("replay", 1): 0.4, ("replay", 2): 0.7}
    for (learner, seed), score in scores.items():
        metrics = METRICS | {"average_score": score, "bwt": None}
        write(tmp_path / f"{learner}{seed}", record_of(learner, seed, metrics=metrics))
    write(tmp_path / "other", record_of(stream="glue"))
    assert main(["compare", str(tmp_path), "--json", "--against", "finetune"]) == 1
    output = capsys.readouterr()
    values = json.loads(output.out)
    documented = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
    names = {*values, *values["runs"][0], *values["methods"][0], *values["differences"][0]}
    names |= {*values["methods"][0]["estimates"]["average_score"]}
    assert not {name for name in names if f"`{name}`" not in documented}
    assert [run["average_score"] for run in values["runs"]] == list(scores.values())
    finetune, replay = values["methods"]
    assert (finetune["method"], finetune["seeds"], replay["complete"]) == ("finetune", [1, 2], True)
    estimate = finetune["estimates"]["average_score"]
    assert (estimate["mean"], estimate["n"]) == (pytest.approx(0.4), 2)
    assert estimate["sd"] == pytest.approx(0.02**0.5)
    assert estimate["high"] == pytest.approx(0.4 + 12.7062 * 0.1, abs=1e-4)  # t(0.975, 1)
    nothing = {"mean": None, "sd": None, "low": None, "high": None, "n": 0}
    assert finetune["estimates"]["bwt"] == finetune["estimates"]["gap_to_joint"] == nothing
    difference = values["differences"][0]
    assert (difference["measure"], difference["mean"]) == ("average_score", pytest.approx(0.15))
    assert difference["pairs"] == 2
    (left_out,) = values["left_out"]
    assert output.err == f"compare: {left_out}\n"


@pytest.mark.parametrize("found", ["1", "2"])
def test_verify_prints_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    checks = [Check("status", "known", "known"), Check("stored bytes", "1", found)]
    monkeypatch.setattr("stream.run.verify.verify", lambda *_: iter(checks))
    is_same = found == "1"
    assert main(["verify", "folder", "--json"]) == (0 if is_same else 1)
    values = json.loads(capsys.readouterr().out)
    assert values == {
        "schema": 1,
        "run": "folder",
        "ok": is_same,
        "failed": int(not is_same),
        "checks": [
            {"check": "status", "recorded": "known", "found": "known", "ok": True},
            {"check": "stored bytes", "recorded": "1", "found": found, "ok": is_same},
        ],
    }


def test_verify_of_no_run_prints_no_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise UserError("no run there")

    monkeypatch.setattr("stream.run.verify.verify", fail)
    assert main(["verify", "folder", "--json"]) == 2
    assert capsys.readouterr() == ("", "error: no run there\n")
