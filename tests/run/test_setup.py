"""Which device a run gets, of those that this machine shows it."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stream.errors import UserError
from stream.run.setup import pick_device, place_of
from stream.run.worker import device_of


@pytest.mark.parametrize(
    ("asked", "gpus", "visible", "expected"),
    [
        ("auto", 0, "", "cpu"),
        ("auto", 2, None, "cuda"),
        ("cpu", 2, None, "cpu"),
        ("cuda", 1, "3", "cuda"),
        ("cuda:1", 2, None, "cuda:1"),
        ("cuda:1", 1, "3", "1 CUDA device (CUDA_VISIBLE_DEVICES=3). Valid: cpu, cuda:0"),
        ("cuda:2", 2, None, "finds 2 CUDA devices. Valid: cpu, cuda:0, cuda:1"),
        ("cuda", 0, None, "device=cuda: torch finds no CUDA device. Valid: cpu"),
        ("cuda:0", 0, "", "torch finds no CUDA device (CUDA_VISIBLE_DEVICES=). Valid: cpu"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, asked: str, gpus: int, visible: str | None, expected: str
) -> None:
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if " " in expected:
        with pytest.raises(UserError, match=re.escape(expected)) as caught:
            pick_device(asked)
        assert "\n" not in str(caught.value)
    else:
        assert str(pick_device(asked)) == expected
        assert chosen == [torch.device(name) for name in [expected] if ":" in name]


def test_a_gpu_is_named_also_that_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device}")
    for device, expected in (("cuda:1", "GPU of cuda:1"), ("cpu", None)):
        asked: Any = SimpleNamespace(device=device, backbone=SimpleNamespace(precision="float32"))
        worker: Any = None
        assert place_of(asked).gpu == expected
        assert device_of(worker, device, "float32").gpu == expected
