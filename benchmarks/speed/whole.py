"""Where the time of a whole run goes: ``python -m benchmarks.speed.whole``.

A run of the 26 tasks of ``stream=houlsby26`` (files of `--data`; generated where they are not
there) with a tiny encoder and few steps, so that what remains is all that is neither learning nor
scoring. It is started again and again, each time in a process of its own and from the command line;
the cache is that of a second run, unless `--cold` empties it. With ``--against CHECKOUT`` (another
checkout of this repository, such as ``git worktree add /tmp/before COMMIT``) both are run in turn,
and the last column is the ratio. Times are CPU seconds of all threads, medians over the rounds;
the first line is the wall clock. Further arguments are settings of the run, which replace its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks import ROOT

SETTINGS = {
    "learner": "adapter",
    "stream": "houlsby26",
    "backbone": "tiny",
    "tracking": "none",
    "device": "cpu",
    "limits.train": "1000",
    "limits.eval": "64",
    "training.epochs": "1",
    "training.min_steps": "1",
    "training.batch_size": "128",
}
PHASES = {  # what a person would call it: the functions whose time it is, where they are looked up
    "checking the command line": "stream.cli.run:check_command_line",
    "composing again (Hydra)": "hydra._internal.hydra:Hydra.compose_config",
    "importing torch": "stream.cli.run:import_together",
    "importing transformers": "stream.run.setup:import_together",
    "tokenizer": "stream.run.setup:TextEncoder",
    "reading and encoding": "stream.run.setup:build_tasks",
    "loading the encoder": "stream.run.setup:load_encoder",
    "untrained scores": "stream.run.runner:score_untrained",
    "learning": "stream.run.runner:learn",
    "scoring": "stream.run.runner:score_row",
    "fingerprints, ledger": "stream.run.runner:account",
    "saving": "stream.run.runner:_save",
    "figures, end": "stream.run.runner:_finish",
}
WALL, REST = "wall clock", "the rest"
TIMED = """
import importlib, json, os, sys, time
began, phases, written = time.process_time(), json.loads(sys.argv.pop(1)), sys.argv.pop(1)
spent, depth = {}, []

def timed(name, function):
    def called(*arguments, **named):
        depth.append(name)
        start = time.process_time()
        try:
            return function(*arguments, **named)
        finally:
            depth.pop()
            if not depth:  # of a phase within another one, the outer one counts
                spent[name] = spent.get(name, 0) + time.process_time() - start
    return called

def wrap(name, path):
    module, _, place = path.partition(":")
    holder = importlib.import_module(module)
    *outer, last = place.split(".")
    for part in outer:
        holder = getattr(holder, part, None)
    if hasattr(holder, last):  # another version may lack it
        setattr(holder, last, timed(name, getattr(holder, last)))

import stream.cli.run as run
assert run.__file__.startswith(os.environ["PYTHONPATH"] + os.sep), run.__file__
spent["importing the command line"] = time.process_time() - began
run._import_session = lambda: __import__("stream.run.session")
before = run._run

def _run(*arguments, **named):
    run._import_session()
    for name, path in phases.items():
        if path.startswith("stream.run."):
            wrap(name, path)
    return before(*arguments, **named)

run._run = _run
for name, path in phases.items():
    if not path.startswith("stream.run."):
        wrap(name, path)
code = 0
try:
    run.main(sys.argv[1:])
except SystemExit as error:
    code = error.code
total = time.process_time()  # since the interpreter began
with open(written, "w") as file:
    json.dump({**spent, "all": total}, file)
sys.exit(code)
"""


def run_once(checkout: Path, settings: Mapping[str, str], folder: Path) -> dict[str, float]:
    """Run once; return seconds by phase.

    Args:
        checkout: the repository whose code runs.
        settings: of the run.
        folder: empty; the run goes there.
    """
    written = folder / "phases.json"
    given = [f"{key}={value}" for key, value in settings.items()]
    given.append(f"hydra.run.dir={folder / 'run'}")
    command = [sys.executable, "-c", TIMED, json.dumps(PHASES), str(written), *given]
    start = time.monotonic()
    ended = subprocess.run(
        command,
        cwd=folder,  # Python would import the program from here, if it were in a checkout
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.monotonic() - start
    if ended.returncode:
        raise ChildProcessError(f"{checkout}: {ended.stderr[-2000:]}")
    spent = json.loads(written.read_text())
    total = spent.pop("all")
    return {WALL: wall, **spent, REST: total - sum(spent.values())}


def measured(
    checkouts: Sequence[Path], settings: Mapping[str, str], rounds: int, *, cold: bool
) -> list[dict[str, float]]:
    """Return the median seconds by phase of each checkout; they take turns.

    Args:
        checkouts: the repositories.
        settings: of the run.
        rounds: how often each is run and counted.
        cold: whether the cache is emptied before each run; else a first run fills it.
    """
    found: list[list[dict[str, float]]] = [[] for _ in checkouts]
    with tempfile.TemporaryDirectory(prefix="whole-") as name:
        for number in range(rounds + (not cold)):
            for at, checkout in enumerate(checkouts):
                folder, cache = Path(name, f"{number}-{at}"), Path(name, f"cache-{at}")
                folder.mkdir()
                if cold:
                    shutil.rmtree(cache, ignore_errors=True)
                spent = run_once(checkout, {**settings, "cache": str(cache)}, folder)
                if cold or number:
                    found[at].append(spent)
                shutil.rmtree(folder)
    names = list(dict.fromkeys(name for runs in found for spent in runs for name in spent))
    return [{n: median(spent.get(n, 0.0) for spent in runs) for n in names} for runs in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; print a table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--against", type=Path, help="another checkout, which is run first")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="empty the cache before each run")
    parser.add_argument("settings", nargs="*", help="such as device=cuda limits.train=1000")
    given = parser.parse_args(arguments)
    data = {"data": "files", "data.root": str(given.data.resolve())}
    if not given.data.is_dir():
        print(f"{given.data} is not there: the data are generated")
        data = {"data": "generated", "data.train": "1000"}
    own = dict(setting.split("=", 1) for setting in given.settings)
    checkouts = [ROOT] if given.against is None else [given.against.resolve(), ROOT]
    found = measured(checkouts, {**SETTINGS, **data, **own}, given.rounds, cold=given.cold)
    if given.against is None:
        print("| | s |\n|---|---|")
    else:
        print("| | before, s | now, s | before / now |\n|---|---|---|---|")
    for name in found[0]:
        seconds = [spent[name] for spent in found]
        ratio = [f"{seconds[0] / seconds[1]:.2f}" if min(seconds) > 0.005 else "-"]
        shown = [*(f"{value:.2f}" for value in seconds), *(ratio if len(seconds) > 1 else [])]
        print(f"| {name} | {' | '.join(shown)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
