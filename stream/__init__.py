"""Feed a stream of text classification tasks to a learner and measure every cell.

A run from Python, in a notebook for example:

    import stream

    results = stream.run_stream(
        learner="adapter", task=["sst2", "rte"], backbone="tiny", tracking="none",
        overrides=["learner.size=8"],
    )
    print(results.scores)  # a DataFrame: rows "after learning", columns "on task"
    print(results.metrics["average_score"], results.record.memory)
    print(results.predict("sst2", ["a fine film", "a dull one"]))

Without ``backbone="tiny"``, which has random weights, it takes a pretrained encoder. `run_stream`
takes the settings of ``task-stream run``; `load` opens the folder of a finished run. Both return
`Results`. Importing this package imports neither torch nor pandas.
"""

from typing import TYPE_CHECKING, Any

from stream.openmp import wait_briefly

if TYPE_CHECKING:
    from stream.api import Results, load, run_stream

    __version__: str

wait_briefly()  # before torch is imported

__all__ = ["Results", "__version__", "load", "run_stream"]


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'stream' has no attribute {name!r}")
    if name == "__version__":
        from stream.version import installed_version

        return installed_version()
    from stream import api

    return getattr(api, name)
