"""The settings of a run: composed from conf/ and overrides, or recorded; how two of them differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from stream.config.compose import register, restore
from stream.config.composition import Composition
from stream.config.effect import check_effects
from stream.config.given import given_settings
from stream.config.members import unusable
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.config.typed import in_grammar, parse
from stream.data.build import DATA
from stream.errors import choose, require, understood
from stream.learners import LEARNERS
from stream.report.tracking import TRACKERS


def register_groups() -> None:
    """Make the names of learners, data sources and trackers known to Hydra."""
    register({"learner": LEARNERS, "data": DATA, "tracking": TRACKERS})
    unusable("learner", LEARNERS.broken)


def compose_settings(overrides: Sequence[str]) -> tuple[RunConfig, Path]:
    """Compose one run from conf/ and overrides as they are typed; return it and its run folder.

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
    """Return the first value that differs, with both; None where nothing does.

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
    elif old != new:
        yield f"{path} was {old}, now {new}"
