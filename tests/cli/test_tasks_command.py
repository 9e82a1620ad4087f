"""`task-stream tasks`, and a stream on a person's own file, from CSV to results."""

import csv
import json
import re
import shlex
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

    others = other_files(tmp_path)
    report = call("stream", "tasks", "inspect", "reviews.csv", *others)
    assert "cp1252" in report
    assert "semicolon" in report
    assert "1 row with nothing in 'verdict'" in report
    files = ["data=files"]
    shown = call("stream", "tasks", "show", "reviews", *files, "--config-dir", "my-tasks")
    assert "1 no_text (line 202)" in shown
    assert "1 no_label (line 203)" in shown
    command = shlex.split(report.splitlines()[-1].partition(": ")[2])
    assert command[:2] == ["task-stream", "run"]
    call("run_stream", *command[2:], *TINY, "hydra.run.dir=out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["status"] == "complete"
    assert found["labels"] == {
        "reviews": ["bad", "good"],
        "rte_2": ["a${x}", "b\x07"],
        "my_scores": None,
        "splits": ["neg", "pos"],
    }
    accounts = found["data"]["accounts"]["reviews"]
    assert sum(a["read"] for a in accounts.values()) == 202
    assert sum(a["kept"] for a in accounts.values()) == 200
    assert "1 no_text (line 202)" in (tmp_path / "out" / "run.log").read_text()


def other_files(folder: Path) -> list[str]:
    """Write a pair called like a task of the program, scores, and a folder of splits of classes."""
    rows = [f"the lamp {i} is on" for i in range(90)]
    pairs = [
        {
            "is it ${good}?": ["a${x}", "b\x07"][i % 2],
            "premise": text,
            "hypothesis": f"{text}, or not",
        }
        for i, text in enumerate(rows)
    ]
    (folder / "rte.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    scores = [f"{text}\t{i / 20}" for i, text in enumerate(rows)]
    (folder / "my scores.tsv").write_text("\n".join(["a b\tsimilarity", *scores]))
    for i, text in enumerate(rows):
        split = "train" if i < 70 else "dev" if i < 80 else "test"
        path = folder / "splits" / split / ("neg" if i % 2 else "pos") / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ["rte.jsonl", "my scores.tsv", "splits"]


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
        (["show", "cola,sst2"], "unknown task 'cola,sst2'"),
        (["show", "2024"], "unknown task '2024'"),
        (["show", "cola", "task=[sst2]"], "one task, 'cola'"),
        (["show", "cola", "--config-dir", "no such folder"], "no such folder"),
        (["show", "sst2", "data=files", "data.root=/no/such"], "is not a folder"),
        (["inspect", "a.csv", "b.csv", "--name", "x"], "one file's task"),
        (
            ["inspect", "sst2.csv", "--name", "sst2"],
            "would run in the place of sst2.csv; say --name sst2_2",
        ),
        (["inspect", "a.csv", "--name", "2024"], "say --name task_2024"),
        (["inspect", "a.csv", "--out", "/dev/null/x"], "/dev/null is a file); choose"),
        (["inspect", "a.csv", "--name", "my file"], "say --name my_file"),
        (
            ["inspect", "one/a.csv", "two/a.csv"],
            "two files give a task 'a'; inspect one, with --name a_2",
        ),
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
    assert "Did you mean 'verdict'? Valid: id, review, verdict" in capsys.readouterr().err


def test_what_inspect_prints_and_writes_is_what_show_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder for a shell to trip over, a number for a name, a dialect that was given."""
    monkeypatch.chdir(tmp_path)
    labels = ["a${x}", "???", "s\u00f3w"]
    rows = [f"the lamp {i} \u0142;{labels[i % 3]};{'' if i % 9 else i}" for i in range(60)]
    Path("2024.csv").write_text("\n".join([*rows, "  ;???;x"]), encoding="cp1250")
    out = "my o'ut $HOME"
    given = ["--encoding", "cp1250", "--delimiter", "semicolon", "--no-header", "--out", out]
    assert main(["tasks", "inspect", "2024.csv", *given]) == 0
    printed = capsys.readouterr().out
    assert "a run keeps 60 of 61 rows (" in printed
    assert "; dropped: 1 no_text (line 61)" in printed
    command = shlex.split(printed.splitlines()[-1].removeprefix("run it: "))
    assert command[:5] == ["task-stream", "run", "--config-dir", out, "task=[task_2024]"]
    assert main(["tasks", "show", "task_2024", *command[5:], "--config-dir", command[3]]) == 0
    shown = capsys.readouterr().out
    kept = [int(n) for n in re.findall(r"(\d+) read = \d+ kept", shown)]
    assert sum(kept) == 61
    assert "1 no_text (line 61)" in shown
    assert "cp1250, semicolon" in shown
    assert all(repr(label) in shown for label in labels)


def test_nothing_is_written_if_one_file_cannot_be_read(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").touch()
    out = tmp_path / "t"
    assert (
        main(["tasks", "inspect", str(reviews), str(tmp_path / "empty.csv"), "--out", str(out)])
        == 2
    )
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()


def test_prepare_encodes_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tasks", "prepare", "task=[cola,stsb]", "data.train=20", f"cache={tmp_path}"]
    assert main(arguments) == 0
    assert "2 tasks, 296 rows, 296 of them encoded now" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "296 rows, 0 of them encoded now" in capsys.readouterr().out
