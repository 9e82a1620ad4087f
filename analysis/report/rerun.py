"""The command lines that run a method again.

They are the overrides that its records hold. A record from before these were kept gives its
configuration instead, each setting that can change a score by name.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.runs.collect import RecordedRun
from stream.formatting import CUSTOM
from stream.record.run_record import RunRecord

SECTIONS = ("learner", "data", "limits", "training", "evaluation", "probe")
PLAIN = ("order", "order_seed", "leaks", "count_flops")
RESERVED = ("null", "true", "false", "nan", "inf")
SAFE = re.compile(r"[\w./:+@-]*[A-Za-z_./][\w./:+@-]*")  # text that Hydra reads as it stands


def commands(runs: Sequence[RecordedRun]) -> list[str]:
    """Return the shell commands that repeat the runs of one method: one if only seeds differ."""
    seeds: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        given = run.record.overrides
        words = list(configured(run.record)) if given is None else given
        others = tuple(word for word in words if not word.startswith("seed="))
        found, seed = seeds.setdefault(others, []), str(run.record.seed)
        if seed not in found:
            found.append(seed)
    return [_command(words, found) for words, found in seeds.items()]


def _command(words: Sequence[str], seeds: Sequence[str]) -> str:
    multirun = ["-m"] if len(seeds) > 1 else []
    line = ["python", "run_stream.py", *multirun, *words, f"seed={','.join(seeds)}"]
    return " ".join(map(shlex.quote, line))


def configured(record: RunRecord) -> Iterator[str]:
    """Yield the overrides that compose to a record's configuration, without its seed."""
    config = record.config
    yield f"learner={_value(record.learner)}"
    yield f"data={_value(record.source)}"
    yield f"backbone={_value(record.backbone)}"
    if record.stream == CUSTOM:
        yield f"task={_value(list(config.get('task') or record.order))}"  # in the order of choice
    else:
        yield f"stream={_value(record.stream)}"
    sections = {name: dict(config.get(name) or {}) for name in (*SECTIONS, "backbone")}
    sections["data"].pop("source", None)
    chosen = ("pooling", "max_length", *["location"] * (record.backbone == "folder"))
    backbone = sections["backbone"]
    sections["backbone"] = {name: backbone[name] for name in chosen if name in backbone}
    sections[""] = {name: config[name] for name in PLAIN if name in config}
    for section, values in sections.items():
        for name, value in values.items():
            yield f"{section}.{name}={_value(value)}".removeprefix(".")


def _value(value: Any) -> str:
    """Return a value in Hydra's grammar of overrides."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_value(inner)}" for name, inner in value.items()) + "}"
    text = str(value)
    if isinstance(value, int | float) or (SAFE.fullmatch(text) and text.lower() not in RESERVED):
        return text
    return "'" + text.replace("\\'", "\\\\'").replace("'", "\\'") + "'"
