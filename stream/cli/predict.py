"""``task-stream predict RUN --task sst2 < texts``: answers from any learned task of a run.

One text per line, the texts of a pair (or of a row of more texts) separated by tabs; one answer per
line, of blank lines too. With ``--task auto`` the router of a run with ``scenario=inferred`` finds
the task of each text, and each answer begins with it.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stream.errors import UserError
from stream.formatting import count
from stream.run.predict import AUTO, Prediction, Service, Text

SHOWN = 5


def add_commands(commands: Any) -> None:
    """Add ``predict`` to the command line."""
    command = commands.add_parser("predict", description=str(__doc__).replace("``", "`"))
    command.add_argument("run", type=Path, metavar="RUN", help="a run folder, or an exported task")
    command.add_argument(
        "--task",
        help="a task that the run has learned; auto lets the router of scenario=inferred find it; "
        "with scenario=shared_head none is needed",
    )
    command.add_argument("--json", action="store_true", help="print JSON, probabilities included")
    command.add_argument("--device", default="auto", help="cpu, cuda or auto")
    command.add_argument("--encoder", type=Path, help="the folder of an exported task's encoder")
    command.add_argument("--encoding", default="utf-8", help="of the texts, such as cp1252")
    command.set_defaults(execute=_predict)


def _predict(given: argparse.Namespace) -> None:
    """Read texts from standard input, print one answer per line."""
    service = Service(given.run, given.device, given.encoder)
    num_texts = _num_texts(service, given.task)
    if sys.stdin.isatty():
        print("type one text a line, then Ctrl-D", file=sys.stderr)
    lines = lines_of(decoded(sys.stdin.buffer.read(), given.encoding))
    texts = [_text(line, num_texts) for line in lines]
    blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
    for answer in service.predict(given.task, texts):
        print(_as_json(answer) if given.json else as_text(answer))
    if blank:
        print(f"{_listed(blank)}: blank, answered as an empty text", file=sys.stderr)


def _num_texts(service: Service, task: str | None) -> int | None:
    """Return how many texts a line has; None takes any number.

    Raises:
        UserError: a task that was not learned, or a run that cannot infer it.
    """
    if task == AUTO and AUTO not in service.tasks:
        service.require_router()
        return None
    return service.num_texts(service.read_as(task))


def decoded(raw: bytes, encoding: str) -> str:
    """Return text without a byte order mark.

    Raises:
        UserError: an unknown encoding, or bytes that are not valid in it; names line and byte.
    """
    try:
        "".encode(encoding)  # LookupError for codecs that are not of text, such as base64
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(encoding, "ignore").count("\n") + 1
        byte = raw[error.start : error.start + 1].hex()
        raise UserError(
            f"standard input: line {line}: byte 0x{byte} is not {encoding}; say which encoding the "
            "texts have, such as --encoding cp1252"
        ) from error
    except (LookupError, ValueError) as error:
        raise UserError(
            f"--encoding {encoding} is no encoding of text that Python knows"
        ) from error


def lines_of(text: str) -> list[str]:
    r"""Return the lines; ``\n`` and ``\r\n`` end one, and nothing else does.

    >>> lines_of("a\x0cb\r\n\nc")
    ['a\x0cb', '', 'c']
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _text(line: str, num_texts: int | None) -> Text:
    """Return the row of one line: a tab separates texts, a blank line holds empty ones."""
    if not line.strip():
        return ("",) * num_texts if num_texts and num_texts > 1 else ""
    texts = line.split("\t")
    return line if len(texts) == 1 else tuple(texts)


def _listed(lines: Sequence[int]) -> str:
    """Return the numbers of the first lines."""
    shown = ", ".join(map(str, lines[:SHOWN])) + (", ..." if len(lines) > SHOWN else "")
    return f"{count(len(lines), 'line')} ({shown})"


def _as_json(answer: Prediction) -> str:
    """Return one line of JSON."""
    inferred = {} if answer.task is None else {"task": answer.task}
    if answer.score is not None:
        return json.dumps({**inferred, "score": answer.score})
    of = {"tasks": answer.tasks} if answer.tasks else {}
    said = {"label": answer.label, **of, "probabilities": answer.probabilities}
    return json.dumps({**inferred, **said})


def as_text(answer: Prediction) -> str:
    """Return the label or the score; letters that would move a terminal's cursor are escaped.

    Before it, apart by a tab, stands the task that was inferred; behind it, of a head that all
    tasks share, the tasks that have the class.
    """
    inferred = "" if answer.task is None else f"{answer.task}\t"
    if answer.score is not None:
        return f"{inferred}{answer.score:.3f}"
    label = str(answer.label)
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in label)
    tasks = f"\t{', '.join(answer.tasks)}" if answer.tasks else ""
    return f"{inferred}{''.join(shown)}{tasks}"
