"""``task-stream predict RUN --task sst2 < texts``: answers from any learned task of a run.

One text per line, the two texts of a pair separated by a tab.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from stream.run.predict import Prediction, Service, Text


def add_commands(commands: Any) -> None:
    """Add ``predict`` to the command line."""
    command = commands.add_parser("predict", description=__doc__)
    command.add_argument("run", type=Path, metavar="RUN", help="a run folder, or an exported task")
    command.add_argument("--task", required=True, help="a task that the run has learned")
    command.add_argument("--json", action="store_true", help="print JSON, probabilities included")
    command.add_argument("--device", default="auto", help="cpu, cuda or auto")
    command.add_argument("--encoder", type=Path, help="the folder of an exported task's encoder")
    command.set_defaults(execute=_predict)


def _predict(given: argparse.Namespace) -> None:
    """Read texts from standard input, print one answer per line."""
    texts = _read_texts(sys.stdin.read())
    service = Service(given.run, given.device, given.encoder)
    for answer in service.predict(given.task, texts):
        print(_as_json(answer) if given.json else as_text(answer))


def _read_texts(text: str) -> list[Text]:
    """Return the rows of standard input; a tab makes a pair."""
    rows: list[Text] = []
    for line in text.splitlines():
        first, tab, second = line.partition("\t")
        rows.append((first, second) if tab else line)
    return rows


def _as_json(answer: Prediction) -> str:
    """Return one line of JSON."""
    if answer.score is not None:
        return json.dumps({"score": answer.score})
    return json.dumps({"label": answer.label, "probabilities": answer.probabilities})


def as_text(answer: Prediction) -> str:
    """Return the label or the score; letters that would move a terminal's cursor are escaped."""
    if answer.score is not None:
        return f"{answer.score:.3f}"
    label = str(answer.label)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in label)
