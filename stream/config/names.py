"""The names of all settings, and which of them was meant by one that does not exist."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from stream.config.run import RunConfig
from stream.errors import UserError

SCHEMA_GROUPS = ("learner", "data", "tracking")
"""The groups whose choices are dataclasses of their own, so that each one has other settings."""
GROUPS = (*SCHEMA_GROUPS, "backbone", "stream", "task", "protocol", "experiment")
NEAR = 0.6
"""The least similarity (difflib's ratio) of a name that is suggested."""
MOST = 3
"""The largest number of names that are suggested."""


def unknown_setting(key: str, siblings: Iterable[str], chosen: Mapping[str, str]) -> UserError:
    """Return the error for a setting that does not exist, with the name that was meant.

    Args:
        key: the dotted name that was given.
        siblings: the dotted names that are valid at its place.
        chosen: the names of the present choices, by group (`SCHEMA_GROUPS`).
    """
    valid = list(siblings)
    owners = _owners()
    for name in valid:
        owners.setdefault(name, [])
    if owners.get(key):
        hint = f"; it belongs to {_listed(key, owners[key])}."
    else:
        near = [f"{name!r}{_of(name, owners[name], chosen)}" for name in _nearest(key, owners)]
        hint = f". Did you mean {' or '.join(near)}?" if near else "."
    return UserError(f"unknown setting {key!r}{hint} Valid: {', '.join(valid) or 'none'}")


def _owners() -> dict[str, list[str]]:
    """Return every dotted name with the choices that have it; a name of all runs has none."""
    found: dict[str, list[str]] = {name: [] for name in _of_all_runs(RunConfig)}
    store = ConfigStore.instance()
    for group in SCHEMA_GROUPS:
        for file in _files(group):
            for key in store.load(f"{group}/{file}").node:
                found.setdefault(f"{group}.{key}", []).append(file.removesuffix(".yaml"))
    return found


def _files(group: str) -> list[str]:
    """Return the choices in Hydra's store; none where nothing was registered, as to read a run."""
    store = ConfigStore.instance()
    return store.list(group) if group in store.repo else []


def _of_all_runs(schema: type, path: str = "") -> Iterator[str]:
    """Yield the dotted names of a dataclass and of those within it."""
    for field in fields(schema):
        name = f"{path}{field.name}"
        if name in ("stream", "task"):  # their files describe them, the command line does not
            continue
        if isinstance(field.type, type) and is_dataclass(field.type):
            yield from _of_all_runs(field.type, f"{name}.")
        elif name not in GROUPS:
            yield name


def _nearest(key: str, names: Iterable[str]) -> list[str]:
    """Return the names that are most like the given one, at most `MOST`; case does not count."""
    ratios = {name: _likeness(key.lower(), name.lower()) for name in names}
    best = max(ratios.values(), default=0.0)
    return [name for name, ratio in ratios.items() if ratio == best >= NEAR][:MOST]


def _likeness(given: str, name: str) -> float:
    """Return how alike two dotted names are; the last part may say it all."""
    last_parts = given.rpartition(".")[2], name.rpartition(".")[2]
    whole, last = (_ratio(*pair) for pair in ((given, name), last_parts))
    return max(whole, last - 0.01)


def _ratio(one: str, other: str) -> float:
    """Return how alike two texts are, from 0 to 1."""
    return difflib.SequenceMatcher(None, one, other).ratio()


def _of(name: str, owners: list[str], chosen: Mapping[str, str]) -> str:
    """Return which choices have the name, where the present one does not."""
    if not owners or chosen.get(name.partition(".")[0]) in owners:
        return ""
    return f" (of {_listed(name, owners)})"


def _listed(name: str, owners: list[str]) -> str:
    """Return the choices that have a name, as they are given on the command line."""
    return f"{name.partition('.')[0]}={', '.join(owners)}"


def chosen_in(root: object) -> dict[str, str]:
    """Return the names of the choices of a composed configuration, by group."""
    found = {}
    if not isinstance(root, DictConfig):
        return found
    store = ConfigStore.instance()
    for group in SCHEMA_GROUPS:
        schema = None if OmegaConf.is_missing(root, group) else root.get(group)
        for file in _files(group):
            kind = OmegaConf.get_type(store.load(f"{group}/{file}").node)
            if schema is not None and OmegaConf.get_type(schema) is kind:
                found[group] = file.removesuffix(".yaml")
    return found
