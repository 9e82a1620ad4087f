"""How threads wait: said before torch is loaded, and only where the user said nothing."""

import os
import subprocess
import sys

import pytest

from stream.openmp import BLOCKTIME, CHOSEN_BY_USER, SPINS, wait_briefly

IMPORTED = (
    "import os, sys, stream; "
    "print('torch' in sys.modules, os.environ['GOMP_SPINCOUNT'], os.environ['KMP_BLOCKTIME'])"
)


def test_it_is_said_when_the_package_is_imported_and_torch_is_not_there_yet() -> None:
    kept = {name: value for name, value in os.environ.items() if name not in CHOSEN_BY_USER}
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTED], env=kept, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["False", SPINS, BLOCKTIME]


@pytest.mark.parametrize("name", CHOSEN_BY_USER)
def test_the_users_choice_stays(name: str) -> None:
    environment = {name: "1"}
    wait_briefly(environment)
    assert environment == {name: "1"}
