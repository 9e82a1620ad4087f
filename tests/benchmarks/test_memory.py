"""`benchmarks.encoders.memory`: bytes of weights against a count by hand; its table."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.encoders.memory import main, measured
from benchmarks.encoders.records import MEMORY, Case, cases_of
from benchmarks.encoders.table import fill
from tests.builders import CPU

TINY = 151_744  # parameters of the shape
INSERTED = 2 * 2 * (2 * 64 * 64 + 64 + 64)  # adapters of size 64 at two places of two layers
NORMS = 5 * 2 * 64  # the embedding's too


def test_weights_are_those_of_a_count_by_hand() -> None:
    case = Case(encoder="tiny", storage="float32", checkpointing=False, length=8, rows=1)
    usual, small = (measured(replace(case, storage=s), CPU) for s in ("float32", "bf16"))
    assert usual.parameters == small.parameters == TINY
    assert usual.weights == 6 * (TINY + INSERTED)
    assert small.weights == 2 * (TINY - NORMS) + 6 * (NORMS + INSERTED)
    assert usual.learning is None  # no peak is known on a CPU


def test_a_case_is_measured_once_and_stands_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- encoders:memory -->\nold\n<!-- end -->\nafter\n")
    chosen = ["--device=cpu", "--shapes=tiny", "--storages=bf16", "--rows=1", f"--out={tmp_path}"]
    main([*chosen, "--lengths=8"])
    main([*chosen, "--lengths=8,512"])
    found = [(c.length, c.checkpointing) for c in cases_of(tmp_path)]
    assert found == [(length, on) for length in (8, 512) for on in (False, True)]
    assert len((tmp_path / MEMORY).read_text().splitlines()) == 4
    assert capsys.readouterr().out.count("positions for 256 tokens") == 2
    fill(page, tmp_path)
    text = page.read_text()
    assert text.startswith("before\n<!-- encoders:memory -->\n| encoder")
    assert text.endswith("\n<!-- end -->\nafter\n")
    assert "| tiny | `bf16` | yes | " in text
    assert "positions for 256 tokens" in text
