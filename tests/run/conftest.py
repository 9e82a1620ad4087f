"""What the tests of this folder share."""

from collections.abc import Iterator

import pytest

from tests.blank_figures import use_blank_figures


@pytest.fixture(autouse=True, scope="module")
def _blank_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_blank_figures(patch)
        yield
