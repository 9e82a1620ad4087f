"""Is a run of every learner proved again from its files?

Run: python -m benchmarks.stress.verify [settings], such as backbone=minilm; --only adapter,lora.
Each learner learns four generated tasks, is checked by ``verify`` in the same process, and gets a
line. Exit code 1 when a check is not green. Tiny random encoder unless settings say otherwise.
"""

import argparse
import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.in_process import composed
from stream.learners import LEARNERS
from stream.run.session import run_in
from stream.run.verify import Check, verify

SMALL = (
    "task=[sst2,rte,stsb,crowdflower_airline]",
    "data.train=32",
    "data.validation=8",
    "data.test=16",
    "backbone=tiny",
    "device=cpu",
)
STEPS = "training.min_steps=4"


def checks_of(name: str, settings: Sequence[str]) -> list[Check]:
    """Return what ``verify`` says of a run of a learner."""
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        steps = [STEPS] if LEARNERS[name].tags.makes_steps else []
        config = composed([*SMALL, f"learner={name}", *steps, *settings])
        run_in(Path(folder), config, Console(file=io.StringIO()), overrides=())
        return list(verify(Path(folder), "cpu"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and verify one learner after the other; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", nargs="*", help="as for run_stream.py")
    parser.add_argument("--only", help="learners, separated by commas")
    given = parser.parse_args(arguments)
    names = given.only.split(",") if given.only else sorted(LEARNERS)
    bad, total = 0, 0
    for name in names:
        checks = checks_of(name, given.settings)
        wrong = [check for check in checks if not check.ok]
        total += len(checks)
        bad += len(wrong)
        print(f"{name:16} {len(checks) - len(wrong):3} of {len(checks):3} checks agree", flush=True)
        for check in wrong:
            print(f"  {check.what}: recorded {check.expected}, now {check.found}")
    print(f"learners: {len(names)}; {total - bad} of {total} checks agree")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
