"""`python -m stream.tasks`, and a stream on a person's own file, from CSV to results."""

import csv
import json
from pathlib import Path

import pytest

from stream.cli.main import main
from tests.run.program import run_module

TINY = ["backbone=tiny", "device=cpu", "tracking=none", "training.min_steps=4"]


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A file as people have them: cp1252, semicolons, quotes, an index, a wrong row or two."""
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="cp1252") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["id", "review", "verdict"])
        for i in range(200):
            word = "naïve" if i % 2 else "café"
            writer.writerow([i, f'It was {word}; they said "no {i}"', "good" if i % 2 else "bad"])
        writer.writerow([200, "  ", "good"])
        writer.writerow([201, "no verdict", ""])
    return path


@pytest.mark.slow
def test_from_a_file_to_a_stream_in_three_commands(reviews: Path, tmp_path: Path) -> None:
    def call(module: str, *arguments: str) -> str:
        code, out, err = run_module(tmp_path, module, *arguments)
        assert (code, err.count("Traceback")) == (0, 0), err
        return out

    report = call("stream.tasks", "inspect", "reviews.csv")
    assert "cp1252" in report
    assert "semicolon" in report
    assert "1 rows have nothing in 'verdict'" in report
    files = ["data=files"]
    shown = call("stream.tasks", "show", "reviews", *files, "--config-dir", "my-tasks")
    assert "1 no_text (line 202)" in shown
    assert "1 no_label (line 203)" in shown
    own = ["--config-dir", "my-tasks", "task=[reviews]"]
    call("run_stream", *own, *files, *TINY, "hydra.run.dir=out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["status"] == "complete"
    assert found["labels"] == {"reviews": ["bad", "good"]}
    accounts = found["data"]["accounts"]["reviews"]
    assert sum(a["read"] for a in accounts.values()) == 202
    assert sum(a["kept"] for a in accounts.values()) == 200
    assert "1 no_text (line 202)" in (tmp_path / "out" / "run.log").read_text()


def test_inspect_writes_a_task_that_says_what_it_found(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["tasks", "inspect", str(reviews), "--name", "mine", "--out", str(tmp_path / "t")])
        == 0
    )
    text = (tmp_path / "t" / "task" / "mine.yaml").read_text()
    assert '- "bad"\n    - "good"\n' in text
    assert 'label: "verdict"' in text
    assert (
        main(["tasks", "inspect", str(reviews), "--name", "mine", "--out", str(tmp_path / "t")])
        == 2
    )
    assert "exists already; remove it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "no.csv"], "no.csv"),
        (["show", "sst3"], "Did you mean 'sst2'"),
        (["show", "sst2", "data=files", "data.root=/no/such"], "is not a folder"),
        (["inspect", "a.csv", "b.csv", "--name", "x"], "one file's task"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_wrong_columns_are_named(reviews: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "inspect", str(reviews), "--label", "verdikt"]) == 2
    assert "no column 'verdikt'; it has ['id', 'review', 'verdict']" in capsys.readouterr().err


def test_prepare_encodes_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tasks", "prepare", "task=[cola,stsb]", "data.train=20", f"cache={tmp_path}"]
    assert main(arguments) == 0
    assert "2 tasks, 296 rows, 296 of them encoded now" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "296 rows, 0 of them encoded now" in capsys.readouterr().out
