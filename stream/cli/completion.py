"""Shell completion: of a run's settings by Hydra, of everything else from the names themselves.

``eval "$(task-stream run --shell-completion install=bash)"`` makes the shell call, with what was
typed in the variable COMP_LINE, ``task-stream -sc query=bash``; so does ``python run_stream.py``.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from functools import partial
from importlib import import_module
from pathlib import Path

from stream.config.choices import names
from stream.learners.description import described_learners
from stream.metrics.glossary import OF_RUNS, OF_TASKS

FLAGS = ("-sc", "--shell-completion")
TYPED = "COMP_LINE"
DEBUG = "HYDRA_COMP_DEBUG"
"""Hydra's own variable; with it mistakes in what was typed are told while it is completed."""
OF_RUNS_SETTINGS = ("run", "tune")
"""The sub-commands that take settings of runs."""
CHOOSES_TASKS = ("task=", "task.", "stream=", "experiment=", "+experiment=")
GROUPS = ("task", "stream", "protocol", "backbone")
TASKS_COMMANDS = ("list", "show", "prepare", "inspect")


def answer(arguments: Sequence[str]) -> None:
    """Answer a shell; what is about a run goes to Hydra.

    Args:
        arguments: one of `FLAGS`, and what stands behind it.
    """
    typed = os.environ.get(TYPED, "").split()
    done = len(typed) - (not os.environ.get(TYPED, "").endswith(" "))  # words that are complete
    is_query = TYPED in os.environ and any(text.startswith("query=") for text in arguments)
    if not is_query or (done > 1 and typed[1] in OF_RUNS_SETTINGS):
        import_module("stream.cli.run").main(["--shell-completion", *arguments[1:]])
        return
    print("\n".join(_names(typed[1:done])))


def _names(words: Sequence[str]) -> Iterable[str]:
    """Return what may come next, after a command and what stands behind it; none is a file."""
    of: Mapping[tuple[str, ...], Callable[[], Iterable[str]]] = {
        (): lambda: import_module("stream.cli.main").COMMANDS,
        ("tasks",): lambda: TASKS_COMMANDS,
        ("tasks", "show"): lambda: names("task"),
        ("show",): lambda: import_module("stream.cli.show").SHOWN,
        ("show", "learner"): lambda: [*described_learners(), *names("learner")],
        ("show", "metric"): lambda: [*OF_TASKS, *OF_RUNS],
        **{("show", group): partial(names, group) for group in GROUPS},
    }
    return of.get(tuple(words), tuple)()


@contextmanager
def completing(is_asked: bool) -> Iterator[None]:  # noqa: FBT001 - reads as a sentence
    """Have Hydra's completion read what was typed inside the block, and say nothing else.

    Where no task is chosen it composes with one task: the 26 of the default stream take a second.

    Args:
        is_asked: whether a shell asks; otherwise nothing changes.
    """
    if not is_asked:
        yield
        return
    typed = os.environ[TYPED]
    os.environ[TYPED] = _for_hydra(typed)
    with ExitStack() as stack:
        stack.callback(os.environ.__setitem__, TYPED, typed)
        if not os.environ.get(DEBUG):
            nowhere = stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(redirect_stderr(nowhere))
        yield


def _for_hydra(typed: str) -> str:
    """Return what was typed as Hydra reads it: without ``run`` or ``tune``, and with a task."""
    words = typed.split()
    is_script = Path(words[0]).name.startswith("python")
    program, rest = words[: 1 + is_script], words[1 + is_script :]
    if not is_script and rest[:1] and rest[0] in OF_RUNS_SETTINGS:
        rest = [word for word in rest[1:] if not word.startswith("tune.")]
    chosen = any(word.startswith(CHOOSES_TASKS) for word in rest)
    task = [] if chosen else [f"task=[{names('task')[0]}]"]
    return " ".join([*program, *task, *rest]) + (" " if typed.endswith(" ") else "")
