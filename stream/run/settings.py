"""The settings of a run: composed from conf/ and overrides, or recorded; how two of them differ."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from stream.config.compose import register, restore
from stream.config.composition import Composition
from stream.config.data import DATA
from stream.config.effect import check_effects
from stream.config.given import given_settings
from stream.config.members import unusable
from stream.config.paths import conf_folder
from stream.config.run import ADDED, SCORE_NEUTRAL, RunConfig
from stream.config.typed import in_grammar, parse
from stream.errors import choose, require, understood
from stream.formatting import visible
from stream.learners import LEARNERS
from stream.learners.outline import StandIn
from stream.report.tracking import TRACKERS

SHOWN_LETTERS = 100


def register_groups() -> None:
    """Make the names of learners, data sources and trackers known to Hydra."""
    register({"learner": LEARNERS.settings, "data": DATA, "tracking": TRACKERS})
    unusable("learner", LEARNERS.broken)


def with_learner(config: RunConfig) -> RunConfig:
    """Return a configuration that can run: its learner is the method itself, which is imported.

    Raises:
        UserError: what the method raises for its settings.
    """
    chosen = config.learner
    return replace(config, learner=chosen.learner()) if isinstance(chosen, StandIn) else config


def compose_settings(overrides: Sequence[str]) -> tuple[RunConfig, Path]:
    """Compose one run from conf/ and overrides as they are typed; return it and its run folder.

    It has the settings of a learner; `with_learner` gives it the learner.

    Raises:
        UserError: an unknown name, option or value, with the valid choices; a preset that sweeps.
    """
    register_groups()
    texts = [in_grammar(text, multirun=False) for text in overrides]
    composition = Composition.of(conf_folder(), texts)
    given = {text.partition("=")[0] for text in texts}
    lost = [key for key in composition.sweeps if key not in given]
    require(
        not lost,
        f"experiment={composition.choice('experiment')} sweeps {', '.join(lost)}: give one value "
        "for each, or sweep on the command line (task-stream run -m)",
    )
    config = composition.run_config()
    check_effects([(config, given_settings(parse(texts)))])
    return config, composition.run_folder


def as_values(config: RunConfig) -> dict[str, Any]:
    """Return a configuration as the JSON values that a record holds."""
    return msgspec.json.decode(msgspec.json.encode(asdict(config)))


def deciding_values(
    values: Mapping[str, Any], learner: str, counted: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what decides the results of a run, from its settings as JSON values.

    The name of the learner, which its settings do not hold, and the order of the tasks are in it.
    What older records lack is not, where it is as it was by then.

    Args:
        values: what `as_values` returns, or what a record holds.
        learner: the name of the learner.
        counted: settings that count although they change no score.
    """
    task, learner_values = values.get("task") or {}, values.get("learner") or {}
    left = {k: v for k, v in values.items() if k not in SCORE_NEUTRAL or k in counted}
    for added, before in ADDED.items():
        part, _, name = added.partition(".")
        if isinstance(left.get(part), Mapping) and left[part].get(name) == before:
            left[part] = {k: v for k, v in left[part].items() if k != name}
    named = {"learner": {"name": learner, **learner_values}, "task": list(task)}
    return {**named, "conf/task": dict(task), **{k: v for k, v in left.items() if k not in named}}


def deciding_digest(deciding: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what `deciding_values` returned.

    Null, and what holds nothing else, is as good as not there: older versions lack some settings.
    """
    text = json.dumps(_without_null(deciding), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_null(value: Any) -> Any:
    """Return JSON values without the keys whose value is null or holds nothing else."""
    if isinstance(value, Mapping):
        kept = {k: _without_null(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v is not None and v not in ([], {})}
    return [_without_null(v) for v in value] if isinstance(value, list) else value


def recorded_config(values: Mapping[str, Any], learner: str, source: str) -> RunConfig:
    """Return the configuration that a run recorded.

    Args:
        values: the recorded values.
        learner: the name of the learner.
        source: the name of the source of the data.

    Raises:
        UserError: values that this version does not understand.
    """
    method = LEARNERS[learner]
    choose("data", source, DATA)
    with understood("the recorded configuration"):
        tracker = values["tracking"]["name"]
        groups = {
            "learner": method,
            "data": DATA[source],
            "tracking": TRACKERS[tracker] if tracker in TRACKERS else TRACKERS["none"],
        }
        return restore(values, groups)


def first_difference(
    old: Any, new: Any, path: str = "", ignored: Sequence[str] = (), missing: Any = None
) -> str | None:
    """Return the first value that differs, with both, in short; None where nothing does.

    Args:
        old: JSON values.
        new: JSON values.
        path: what both are called.
        ignored: top-level names that do not count.
        missing: what a key that is not there counts as.
    """
    return next(_differences(old, new, path, ignored, missing), None)


def _differences(
    old: Any, new: Any, path: str, ignored: Sequence[str], missing: Any
) -> Iterator[str]:
    """Yield every value that differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in ignored:
                inner = f"{path}.{key}".lstrip(".")
                pair = old.get(key, missing), new.get(key, missing)
                yield from _differences(*pair, inner, (), missing)
    elif _nested(old) and _nested(new) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(*pair, f"{path}[{index}]", (), missing)
    elif old != new and not (_is_empty(old) and _is_empty(new)):
        was, now = _shown(old), _shown(new)
        yield f"{path} was {was}{';' if ', ' in was else ','} now {now}"


def _is_empty(value: Any) -> bool:
    """Whether a value is null, or holds nothing but null: an older version lacks such a setting."""
    return _without_null(value) in (None, [], {})


def _nested(value: Any) -> bool:
    """Whether a value is a list of lists or of objects."""
    return isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value)


def _shown(value: Any) -> str:
    """Return a value for a message: of what holds others, their names."""
    if isinstance(value, Mapping | list):
        value = ", ".join(str(name) for name in value) or "empty"
    return visible("null" if value is None else value, SHOWN_LETTERS)
