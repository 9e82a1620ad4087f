"""In what the encoder computes: what `pick_precision` makes of a device and its instructions."""

import pytest
import torch

from stream.run.setup import pick_precision

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("able", [{"avx512_bf16": True}, {"amx_bf16": True}])
def test_fast_is_bf16_on_a_cpu_with_instructions_for_it(
    able: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert pick_precision("fast", CPU) == "bf16"
    assert pick_precision("auto", CPU) == "float32"


def test_fast_is_float32_on_other_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    able = {"avx512_bf16": False, "avx2": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert pick_precision("fast", CPU) == "float32"


@pytest.mark.parametrize(("native", "found"), [(True, "bf16"), (False, "float32")])
def test_on_a_gpu_fast_is_auto(native: bool, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    assert pick_precision("fast", GPU) == pick_precision("auto", GPU) == found


@pytest.mark.parametrize("wanted", ["float32", "bf16"])
def test_what_was_asked_for_is_taken(wanted: str) -> None:
    assert pick_precision(wanted, CPU) == pick_precision(wanted, GPU) == wanted
