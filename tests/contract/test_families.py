"""The common learners on every encoder family, and what docs/encoders.md says of it."""

import pytest

from benchmarks.encoders.matrix import DOCUMENT, cells, rows_in
from stream.models.families.catalogue import known_types
from tests.contract.matrix import COMMON, shapes, verdict
from tests.models.tiny_families import FAMILIES

EVERY = pytest.mark.parametrize("shape", shapes())


def test_every_known_family_has_a_tiny_shape() -> None:
    assert {shape["model_type"] for shape in FAMILIES.values()} >= set(known_types())


@EVERY
@pytest.mark.parametrize("name", COMMON)
def test_the_common_learners_work_on_every_family(name: str, shape: str) -> None:
    assert verdict(name, shape) == ""


@EVERY
def test_the_document_says_what_was_found(shape: str) -> None:
    """For the learners that are tested here; its command finds out about the others."""
    found = rows_in(DOCUMENT.read_text(encoding="utf-8"))
    assert found[shape][: len(COMMON)] == cells([verdict(name, shape) for name in COMMON])
