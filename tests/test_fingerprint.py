"""Fingerprints: equal for equal numbers, and never for others, whatever memory does."""

import hashlib

import pytest
import torch

from stream.fingerprint import Fingerprinter, tensor_digest


def test_the_digest_is_the_sha256_of_type_shape_and_bytes() -> None:
    tensor = torch.arange(6, dtype=torch.int16).reshape(2, 3)
    expected = hashlib.sha256(b"torch.int16 (2, 3) " + bytes([0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]))
    assert tensor_digest(tensor) == expected.hexdigest()


def test_tensors_that_are_gone_lend_no_fingerprint_to_those_in_their_place() -> None:
    of = Fingerprinter().of  # each tensor is made in memory that the last one may have left
    found = [of({"w": torch.full((64, 8), float(value))}) for value in range(20)]
    assert len(set(found)) == 20


def views(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Different numbers at one address and, but for the first two, of one shape."""
    return {
        "a whole": tensor,
        "its first row": tensor[:1],
        "its transpose": tensor.T,
        "its bits": tensor.view(torch.int32),
        "its first row, repeated": tensor[:1].expand(3, 3),
    }


def test_views_of_one_address_are_told_apart_and_equal_numbers_are_not() -> None:
    tensor = torch.arange(9, dtype=torch.float32).reshape(3, 3)
    fingerprinter = Fingerprinter()
    found = {name: fingerprinter.of({"w": view}) for name, view in views(tensor).items()}
    assert len(set(found.values())) == len(found)
    for name, view in views(tensor).items():  # a copy elsewhere, laid out anew
        assert Fingerprinter().of({"w": view.clone()}) == found[name], name


@pytest.mark.parametrize("change", ["in place", "its data", "a part"])
def test_a_changed_tensor_has_another_fingerprint(change: str) -> None:
    tensor, fingerprinter = torch.zeros(4, 4), Fingerprinter()
    before = fingerprinter.of({"w": tensor})
    if change == "in place":
        tensor.add_(1)
    elif change == "its data":
        tensor.data = torch.ones(4, 4)
    else:
        tensor[2, 3] = -0.0
    assert fingerprinter.of({"w": tensor}) != before


def test_a_fingerprint_is_of_names_tensors_and_evidence() -> None:
    one, two = torch.zeros(2), torch.ones(2)
    first = Fingerprinter().of({"a": one, "b": two}, "rows", "accuracy")
    assert Fingerprinter().of({"b": two.clone(), "a": one.clone()}, "rows", "accuracy") == first
    others = [
        Fingerprinter().of({"a": two, "b": one}, "rows", "accuracy"),
        Fingerprinter().of({"a": one, "c": two}, "rows", "accuracy"),
        Fingerprinter().of({"a": one}, "rows", "accuracy"),
        Fingerprinter().of({"a": one, "b": two}, "other rows", "accuracy"),
        Fingerprinter().of({"a": one, "b": two}, "rows", "f1"),
        Fingerprinter().of({"a": one, "b": two}, "accuracy", "rows"),
    ]
    assert len({first, *others}) == 7


def test_a_shared_tensor_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[torch.Tensor] = []

    def counted(tensor: torch.Tensor) -> str:
        hashed.append(tensor)
        return tensor_digest(tensor)

    monkeypatch.setattr("stream.fingerprint.tensor_digest", counted)
    shared, fingerprinter = torch.nn.Parameter(torch.ones(3)), Fingerprinter()
    for task in ("a", "b", "c"):
        fingerprinter.of({"encoder": shared, task: torch.full((2,), float(ord(task)))})
    assert len(hashed) == 4


@pytest.mark.parametrize(
    "empty", [torch.zeros(0), torch.zeros(0, 3), torch.zeros(0).to(torch.int8)]
)
def test_empty_and_inference_tensors_are_hashed(empty: torch.Tensor) -> None:
    with torch.inference_mode():
        scalar = torch.tensor(1.0)
    found = {Fingerprinter().of({"w": t}) for t in (empty, scalar, torch.tensor(True))}
    assert len(found) == 3
