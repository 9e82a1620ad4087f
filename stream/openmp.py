"""How the threads of torch wait for each other on a CPU: they spin briefly, then sleep.

OpenMP lets a thread that waits spin for milliseconds. On a machine that has nothing else to do this
is fastest by little; beside other work the waiting threads hold the cores that the others need.
The libraries read these variables when they are loaded, so this comes before torch. Waiting changes
no result. `benchmarks/speed/neighbour.py` measures the choice.
"""

import os
from collections.abc import MutableMapping

SPINS = "3000"
"""GNU's OpenMP (torch for Linux): rounds of a waiting loop; its default is 300,000."""
BLOCKTIME = "1"
"""LLVM's and Intel's OpenMP (conda, macOS): milliseconds; the default is 200."""
CHOSEN_BY_USER = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_briefly(environment: MutableMapping[str, str] = os.environ) -> None:
    """Say how threads wait, unless the user said so.

    Args:
        environment: where the variables are set.
    """
    if not any(name in environment for name in CHOSEN_BY_USER):
        environment.update(GOMP_SPINCOUNT=SPINS, KMP_BLOCKTIME=BLOCKTIME)
