"""Whether files of weights hold just those of an encoder: digest, names, shapes, types, values."""

import hashlib
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stream.errors import require
from stream.models.families.family import Family

LOG = logging.getLogger(__name__)
WEIGHTS = "model.safetensors"
STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
# What transformers stored besides weights in the past: constants, of any type.
CONSTANTS = (".position_ids", ".token_type_ids", ".inv_freq", ".attn.bias", ".masked_bias")
NAMED = 3  # so many weights are named in a message


def check_whole(report: dict[str, Any], location: str, family: Family, prefix: str) -> None:
    """Raise UserError if weights are missing, unexpected, or of another shape.

    Args:
        report: what transformers says about the weights.
        location: where they are.
        family: says which weights a text encoder does not need.
        prefix: how names of the encoder's weights begin in a model that has a head.
    """
    heads = tuple(f"{head}." for head in family.heads)
    unexpected = [
        name
        for name in report["unexpected_keys"]
        if not name.removeprefix(f"{prefix}.").startswith(heads) and not name.endswith(CONSTANTS)
    ]
    shapes = [
        f"{name} {list(found)} instead of {list(wanted)}"
        for name, found, wanted in report["mismatched_keys"]
    ]
    faults = {
        "missing": report["missing_keys"],
        "unexpected": unexpected,
        "of another shape": shapes,
        "not loaded": report["error_msgs"],
    }
    said = [f"{len(names)} {what} ({_listed(names)})" for what, names in faults.items() if names]
    lacks_pooler = any(name.startswith("pooler.") for name in report["missing_keys"])
    hint = "; backbone.pooling=cls or mean needs no pooler" if lacks_pooler else ""
    require(
        not said,
        f"the weights in {location} are not those of the encoder in its config.json: "
        f"{', '.join(said)}{hint}",
    )


def check_types(folder: Path, name: str) -> None:
    """Say how the weights are stored if not in float32; raise UserError unless as floats."""
    from safetensors import safe_open

    whole = folder / WEIGHTS
    paths = [whole] if whole.is_file() else [*folder.glob("model-*-of-*")]
    if not paths:
        LOG.info("backbone %s: the hub converted its weights to safetensors", name)
        return
    stored = set()
    for path in paths:
        with safe_open(path, "pt") as file:
            keys = [key for key in file.keys() if not key.endswith(CONSTANTS)]  # noqa: SIM118
            stored |= {file.get_slice(key).get_dtype() for key in keys}
    others = sorted(stored - set(STORED))
    require(
        not others,
        f"the weights in {folder} are stored as {', '.join(others)}; quantized weights cannot be "
        "used, save them as float32, float16 or bfloat16",
    )
    if stored != {"F32"}:
        kinds = ", ".join(sorted(STORED[kind] for kind in stored))
        LOG.info("backbone %s: weights stored as %s are used in float32", name, kinds)


def check_finite(body: nn.Module, location: str) -> None:
    """Raise UserError unless all weights, which are those in ``location``, are finite."""
    broken = [name for name, p in body.named_parameters() if not torch.isfinite(p).all()]
    require(not broken, f"weights in {location} are not finite numbers: {_listed(broken)}")


def check_digest(path: Path, expected: str) -> None:
    """Raise UserError unless the weights have the expected SHA-256."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    require(
        found == expected,
        f"{path} has SHA-256 {found}, expected {expected}: not the weights that were asked for",
    )


def _listed(names: Collection[str]) -> str:
    """Return a few of the names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(sorted(names)[:NAMED]) + (f" and {more} more" if more > 0 else "")
