"""The tables of docs/encoders.md are those of the families' files and of the records."""

from pathlib import Path

import pytest

from benchmarks.encoders import speed
from benchmarks.encoders.matrix import DEFECT, DOCUMENT, cells, matrix, reasons, rows_in
from benchmarks.encoders.records import FILE, Measured, measured
from benchmarks.encoders.table import captured, fill, remarks
from benchmarks.encoders.table import speed as speed_table
from benchmarks.lines import append_line, read_lines
from stream.formatting import DASH
from stream.models.families.catalogue import known_types
from tests.contract.matrix import COMMON, learners

RESULTS = DOCUMENT.parent.parent / "results/encoders"


def test_the_document_holds_the_tables_of_files_and_records(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (copy := tmp_path / "copy.md").write_text(text, encoding="utf-8")
    fill(copy, RESULTS)
    assert copy.read_text(encoding="utf-8") == text
    assert all(f"`{name}`" in text for name in known_types())


def test_the_matrix_tells_what_refuses_and_what_is_broken() -> None:
    found = {shape: dict.fromkeys(learners(), "") for shape in ("one", "two")}
    assert cells([*found["one"].values()]) == ["yes"] * len(learners())
    found["two"] |= {"lora": "lora has no maps", "ewc": f"{DEFECT}: ValueError: no"}
    made = matrix(found)
    rows = rows_in(f"<!-- matrix:families -->\n{made}\n<!-- end -->")
    others = len(learners()) - len(COMMON)
    assert rows["one"] == [*["yes"] * len(COMMON), f"all {others}"]
    assert rows["two"][COMMON.index("lora")] == "refused"
    assert rows["two"][-1] == f"{others - 1} of {others}; `ewc` {DEFECT}"
    assert "- `lora` on `two`: lora has no maps" in reasons(found)
    assert f"- `ewc` on `two`: {DEFECT}: ValueError: no" in reasons(found)


def test_ratios_are_those_of_one_run(tmp_path: Path) -> None:
    """By hand: 30 captured, 10 eager, a rival that failed; the last line of a pair counts."""
    for way, found in {
        "captured": {"steps_per_s": 30.0, "peak_mib": 2048.4, "parameters": 109_482_240},
        "eager": {"steps_per_s": 10.0, "peak_mib": 1000.0},
        "Trainer + peft": {"failed": "no peft"},
    }.items():
        old = Measured(name="BERT-base", way=way, failed="earlier", machine="m")
        append_line(tmp_path / FILE, old)
        append_line(tmp_path / FILE, Measured(name="BERT-base", way=way, machine="m", **found))
    append_line(
        tmp_path / FILE,
        Measured(name="bert", way="agreement", difference=0.0012, refusal="asks", machine="m"),
    )
    records = measured(tmp_path)
    row = speed_table(records).splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "BERT-base",
        "109M",
        "30.0",
        "10.0",
        DASH,
        "3.00",
        DASH,
        "2,048",
        "1,000",
        DASH,
    ]
    assert remarks(records) == "- BERT-base, Trainer + peft: no peft\n- measured on m"
    assert "| `bert` | no: asks | 0.001 |" in captured(records)


def test_a_measurement_that_dies_or_hangs_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of the measurements is one that ends, hangs, or writes one line and crashes."""
    todo = [("one", "eager"), ("two", "eager"), ("three", "eager"), ("four", "eager")]
    monkeypatch.setattr(speed, "jobs", lambda: todo)
    path = tmp_path / FILE
    (tmp_path / "three").write_text(
        '{"name":"three","way":"eager","failed":"CUDA error","machine":"m"}\n'
    )
    (tmp_path / "four").write_text(
        '{"name":"four","way":"eager","steps_per_s":1.0,"machine":"m"}\n'
    )
    adds = [f"cat {tmp_path / name} >> {path}" for name in ("three", "four")]
    scripts = iter(["exit 3", "exec sleep 60", f"{adds[0]}; exit 1", adds[1]])
    monkeypatch.setattr(speed, "command_of", lambda *_, tiny: ["sh", "-c", next(scripts)])
    assert speed.main(["--out", str(tmp_path), "--limit", "1"]) == 0
    said = {found.name: found.failed for found in read_lines(path, Measured)}
    assert said == {
        "one": "the process ended with 3",
        "two": "took longer than 1 s",
        "three": "CUDA error",
        "four": "",
    }
    assert speed.pending(tmp_path, retry=False) == []
    assert speed.pending(tmp_path, retry=True) == todo[:3]
