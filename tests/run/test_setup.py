"""Which device a run gets, of those that this machine shows it."""

import re

import pytest
import torch

from stream.errors import UserError
from stream.run.setup import pick_device


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
