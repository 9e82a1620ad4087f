"""Errors as one line: among them that there is no memory, whoever says so."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from stream.cli.boundary import error_boundary, told


def failing_on_a_gpu() -> None:
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 8.00 GiB"
    )


def failing_in_python() -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("use", "asked"),
    [
        (lambda: torch.empty(10**15), " (tried to allocate 4000000000000000 bytes)"),
        (lambda: np.empty(10**15), " (unable to allocate 7.11 PiB)"),
        (failing_on_a_gpu, " (tried to allocate 20.00 GiB)".lower()),
        (failing_in_python, ""),
    ],
)
def test_out_of_memory_is_one_line_that_helps(
    use: Callable[[], object], asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with error_boundary(lambda _: "; go on with: resume=here") as status:
        use()
    shown = capsys.readouterr().err
    assert status.code == 1
    assert shown.count("\n") == 1
    assert shown.startswith("error: out of memory")
    assert asked.lower() in shown.lower()
    for helps in ("training.batch_size", "evaluation.batch_tokens", "backbone.max_length"):
        assert helps in shown
    assert shown.endswith("; go on with: resume=here\n")


def test_what_is_not_expected_keeps_its_traceback() -> None:
    with pytest.raises(RuntimeError, match="a shape"), error_boundary():
        raise RuntimeError("a shape does not fit")


def test_an_interrupt_without_words_is_named() -> None:
    assert told(KeyboardInterrupt()) == "interrupted"
