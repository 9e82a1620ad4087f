"""The command line that runs a method again, rebuilt from the configuration in results.json.

Settings of the learner and of the data are all named, since their defaults may change; the others
only where they are not the default. What changes no score (device, tracker, cache) is left out.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from analysis.runs.collect import Run
from stream.config.run import (
    BackboneConfig,
    EvaluationConfig,
    Limits,
    ProbeConfig,
    RunConfig,
    TrainingConfig,
)

SECTIONS = {
    "limits": Limits,
    "training": TrainingConfig,
    "evaluation": EvaluationConfig,
    "probe": ProbeConfig,
}
PLAIN = ("order", "order_seed", "leaks", "count_flops")
DEFAULT_STREAM = "houlsby26"
DEFAULTS = {
    field.name: field.default
    for field in RunConfig.__dataclass_fields__.values()
    if field.name in PLAIN
}
RESERVED = ("null", "true", "false", "nan", "inf")
SAFE = re.compile(r"[\w./:+@-]*[A-Za-z_./][\w./:+@-]*")  # text that Hydra reads as it stands


def command(runs: Sequence[Run]) -> str:
    """Return the shell command that repeats these runs of one method, all their seeds."""
    results = runs[0].results
    seeds = list(dict.fromkeys(str(run.results["seed"]) for run in runs))
    words = ["python", "run_stream.py", *(["-m"] if len(seeds) > 1 else [])]
    words += [*overrides(results), f"seed={','.join(seeds)}"]
    return " ".join(map(shlex.quote, words))


def overrides(results: dict[str, Any]) -> list[str]:
    """Return the overrides of one run, without its seed."""
    config = results["config"]
    data = _section(config, "data")
    words = [f"learner={_value(results['learner'])}"]
    words += [f"learner.{name}={_value(v)}" for name, v in _section(config, "learner").items()]
    words += [f"data={_value(results['source'])}"]
    words += [f"data.{name}={_value(v)}" for name, v in data.items() if name != "source"]
    words += [*_backbone(results, _section(config, "backbone")), *_tasks(results)]
    for name, schema in SECTIONS.items():
        words += _changed(f"{name}.", _section(config, name), asdict(schema()))
    return [*words, *_changed("", {k: config[k] for k in PLAIN if k in config}, DEFAULTS)]


def _section(config: dict[str, Any], name: str) -> dict[str, Any]:
    values = config.get(name)
    return values if isinstance(values, dict) else {}


def _backbone(results: dict[str, Any], values: dict[str, Any]) -> Iterator[str]:
    yield f"backbone={_value(results['backbone'])}"
    if values.get("origin") == "folder":
        yield f"backbone.location={_value(values.get('location'))}"
    defaults = {name: getattr(BackboneConfig, name) for name in ("pooling", "max_length")}
    yield from _changed("backbone.", {k: values[k] for k in defaults if k in values}, defaults)


def _tasks(results: dict[str, Any]) -> Iterator[str]:
    """Name the stream where it is not the default, or the tasks that were chosen."""
    if results["stream"] == "custom":
        chosen = results["config"].get("task") or results["order"]  # in the order of choice
        yield f"task={_value(list(chosen))}"
    elif results["stream"] != DEFAULT_STREAM:
        yield f"stream={_value(results['stream'])}"


def _changed(prefix: str, values: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if name not in defaults or value != defaults[name]:
            yield f"{prefix}{name}={_value(value)}"


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
