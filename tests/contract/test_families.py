"""The common learners on every encoder family, and what docs/encoders.md says of it."""

import pytest

from benchmarks.encoders.matrix import DOCUMENT, cells, rows_in
from stream.models.families.catalogue import find_family, known_types
from tests.contract.matrix import ALIKE, COMMON, ONE_OF_EACH, WHOLE, shapes, stand_in, verdict
from tests.models.tiny_families import FAMILIES, POOLING

RUN = [shape for shape in shapes() if shape not in ALIKE]
EVERY = pytest.mark.parametrize("shape", RUN)


def test_every_known_family_has_a_tiny_shape() -> None:
    assert {shape["model_type"] for shape in FAMILIES.values()} >= set(known_types())


@pytest.mark.parametrize(("shape", "other"), ALIKE.items())
def test_a_shape_that_another_stands_for_is_its_family(shape: str, other: str) -> None:
    one, like = FAMILIES[shape], FAMILIES[other]
    assert {**one, "model_type": ""} == {**like, "model_type": ""}
    families = [find_family(found["model_type"], where=shape) for found in (one, like)]
    assert families[0] == families[1]
    assert other in RUN


def test_a_learner_that_another_stands_for_runs_on_each_kind_of_encoder() -> None:
    assert set(ONE_OF_EACH) <= set(RUN)
    assert {POOLING[shape] for shape in ONE_OF_EACH} == set(POOLING.values())
    assert [stand_in(name, "bert") for name in COMMON] == list(COMMON)
    replaced = {name for name in COMMON if stand_in(name, "albert") != name}
    assert replaced < set(WHOLE)
    assert {stand_in(name, "albert") for name in replaced} == set(WHOLE) - replaced


@pytest.mark.parametrize(
    ("name", "shape"), [(n, s) for n in COMMON for s in RUN if stand_in(n, s) == n]
)
def test_the_common_learners_work_on_every_family(name: str, shape: str) -> None:
    assert verdict(name, shape) == ""


@EVERY
def test_the_document_says_what_was_found(shape: str) -> None:
    """For the learners that are tested here; its command finds out about the others."""
    found = rows_in(DOCUMENT.read_text(encoding="utf-8"))
    expected = cells([verdict(stand_in(name, shape), shape) for name in COMMON])
    assert found[shape][: len(COMMON)] == expected
