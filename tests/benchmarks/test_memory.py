"""`benchmarks.encoders.memory`: bytes of weights against a count by hand; its table."""

import json
from pathlib import Path

import pytest

from benchmarks.encoders.memory import Case, main, measured
from tests.conftest import CPU

TINY = 151_744  # parameters of the shape
INSERTED = 2 * 2 * (2 * 64 * 64 + 64 + 64)  # adapters of size 64 at two places of two layers
NORMS = 5 * 2 * 64  # the embedding's too


def test_weights_are_those_of_a_count_by_hand() -> None:
    usual, small = (measured(Case("tiny", s, False, 8, 1), CPU) for s in ("float32", "bf16"))
    assert usual.parameters == small.parameters == TINY
    assert usual.weights == 6 * (TINY + INSERTED)
    assert small.weights == 2 * (TINY - NORMS) + 6 * (NORMS + INSERTED)
    assert usual.learning is None  # no peak is known on a CPU


def test_the_table_stands_between_its_markers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- memory -->\nold\n<!-- end -->\nafter\n")
    chosen = ["--shapes=tiny", "--storages=bf16", "--lengths=8,512", "--rows=1"]
    main(["--device=cpu", *chosen, f"--write={page}"])
    text = page.read_text()
    assert text.startswith("before\n<!-- memory -->\n\n")
    assert text.endswith("\n\n<!-- end -->\nafter\n")
    assert "| tiny | `bf16` | yes | " in text
    assert "positions for 256 tokens" in text
    lines = [json.loads(s) for s in capsys.readouterr().out.splitlines() if s.startswith("{")]
    assert [(one["length"], one["checkpointing"]) for one in lines] == [
        (length, on) for length in (8, 512) for on in (False, True)
    ]
