"""A fingerprint tells apart whatever gives other logits or another score."""

import torch

from stream.fingerprint import Fingerprinter, tensor_digest


def test_a_digest_is_of_type_shape_and_bytes() -> None:
    zeros = torch.zeros(2, 3)
    others = [
        zeros.int(),
        zeros.reshape(3, 2),
        zeros.reshape(6),
        zeros + 1e-45,  # the smallest number there is
        -zeros,
    ]
    assert tensor_digest(zeros.clone()) == tensor_digest(zeros)
    assert len({tensor_digest(tensor) for tensor in (zeros, *others)}) == 6
    turned = torch.arange(6.0).reshape(2, 3).T
    assert tensor_digest(turned) == tensor_digest(turned.contiguous())


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
