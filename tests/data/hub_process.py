"""Loads tasks from a stand-in for the hub in a process of its own, which reads where the hub is."""

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from stream.config.task import TaskSpec
from stream.data.task import LoadedTask
from tests.data.hub_server import Hub, serve

ROOT = Path(__file__).parents[2]
LOADS = """
import pickle, sys
from pathlib import Path
from stream.config.data import HubData
from stream.data.loading import load_task

specs, cache = pickle.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2])
loaded = {name: load_task(HubData(), name, spec, cache) for name, spec in specs.items()}
Path(sys.argv[3]).write_bytes(pickle.dumps(loaded))
"""


def loaded_from(hub: Hub, specs: Mapping[str, TaskSpec], folder: Path) -> dict[str, LoadedTask]:
    """Load tasks from a hub; nothing of them is cached before.

    Args:
        hub: what it has.
        specs: the tasks, by name.
        folder: an empty folder.
    """
    (folder / "specs").write_bytes(pickle.dumps(dict(specs)))
    server = serve(hub)
    usual = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    places = {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "home"), "NO_PROXY": "127.0.0.1"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOADS, "specs", "cache", "loaded"],
            cwd=folder,
            env={**usual, **places, "HF_UPDATE_DOWNLOAD_COUNTS": "0", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    return pickle.loads((folder / "loaded").read_bytes())
