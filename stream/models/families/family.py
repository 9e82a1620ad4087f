"""What a family of encoders is: the fields of its YAML file.

Paths are those of modules: inside a layer, unless another start is named. D width of the encoder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from stream.errors import UserError


class FusedMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the outputs of a linear map that computes several things at once.

    Attributes:
        map: the path of the map.
        part: which part, from 0.
        of: how many parts of equal size its outputs have.
        by_head: the parts follow one another inside of every head, not as a whole.
        bias: path of a parameter that is added to this part behind the map, if there is one.
    """

    map: str
    part: int
    of: int = 3
    by_head: bool = False
    bias: str | None = None


class SubLayerPaths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a sub-layer x + F(x) is.

    Attributes:
        reader: the module that reads the sub-layer's input first, as its first argument: x itself
            where norms come after, the norm's output where they come before.
        end: the module whose output is F(x), what is added to x: the place of an adapter.
        norm: the sub-layer's norm: what reads the sum where norms come after; what reads x where
            they come before.
    """

    reader: str
    end: str
    norm: str


class Positions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How tokens know their places.

    Attributes:
        kind: ``absolute`` (an embedding for each position), ``rotary`` (queries and keys are
            turned) or ``relative`` (the family counts distances itself; no positions are given).
        first: the position of a text's first token: a number, or ``after_padding``, the one behind
            ``pad_token_id`` in the configuration, as in fairseq.
        distances: path of a module that finds distances with a number from the CPU, which no CUDA
            graph can hold; it is given them (`stream.models.distances` says what it must have).
    """

    kind: Literal["absolute", "rotary", "relative"] = "absolute"
    first: int | Literal["after_padding"] = 0
    distances: str | None = None


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of encoders; `stream/models/families/bert.yaml` is the example to copy.

    Attributes:
        model_types: ``model_type`` in the ``config.json`` of its encoders.
        layers: path of the list of layers in the body. A ``*`` stands for all members of a list;
            fewer modules than layers in the configuration are used several times, in equal runs.
        norms: ``after`` the residual addition (as BERT) or ``before`` the sub-layer (as GPT-2).
        attention: the sub-layer of attention.
        feedforward: the one of the feed-forward network.
        query: the map that makes queries.
        key: the map that makes keys.
        value: the map that makes values.
        output: the map behind attention.
        inner: the map that reads the inner activations of the feed-forward network.
        positions: how tokens know their places.
        mask: what eager attention can be given: also what is ``added`` to its scores, or no more
            than which are ``tokens``.
        attentions: the ways of transformers to compute attention that compute all of it: ``sdpa``
            leaves out what some families do to scores.
        causal: a token reads those before it alone.
        windows: of each type of layer (``layer_types`` in the configuration), which setting says
            how far away a token may be that another reads (in a causal encoder: how many tokens
            are read, itself among them); null for a type that reads all. ``*`` stands for all
            layers of a configuration without types. Empty where all layers read all.
        leading: special tokens at the start of a text, behind which soft prompts stand: 0 or 1.
        pooling: what may stand for a text: its first token (``cls``), that token
            behind the ``pooler``, the ``mean`` over tokens or its ``last`` token.
        final_norm: path in the body of the norm behind the last layer, where norms come before.
        model: the class of transformers that is the encoder alone or finds it, if `AutoModel`
            gives another.
        heads: how names of weights begin that checkpoints may have and a text encoder does not
            need.
        settings: what an encoder's configuration may say besides the settings that transformers
            declares for it.
        optional: sizes in the configuration that may be 0: there is no such table then.
        fixed: values of the configuration with which it computes as described; with others it is
            refused. A setting that is absent is as it should be.
    """

    model_types: tuple[str, ...]
    layers: str
    norms: Literal["after", "before"]
    attention: SubLayerPaths
    feedforward: SubLayerPaths
    query: str | FusedMap
    key: str | FusedMap
    value: str | FusedMap
    output: str
    inner: str
    positions: Positions = Positions()
    mask: Literal["added", "tokens"] = "added"
    attentions: tuple[Literal["sdpa", "eager"], ...] = ("sdpa", "eager")
    causal: bool = False
    windows: Mapping[str, str | None] = {}
    leading: int = 1
    pooling: tuple[Literal["cls", "pooler", "mean", "last"], ...] = ("cls", "pooler", "mean")
    final_norm: str | None = None
    model: str | None = None
    heads: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = {}


def read_family(path: Path) -> Family:
    """Read a family's YAML file.

    Raises:
        UserError: it is not there, is no YAML, or lacks a field or has one that no family has.
    """
    try:
        return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Family)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        reason = " ".join(str(error).split())
        if "unknown field" in reason:
            reason += f". Valid: {', '.join(_fields(reason))}"
        raise UserError(f"cannot read the encoder family in {path}: {reason}") from error


def _fields(reason: str) -> tuple[str, ...]:
    """Return the fields of the part of a family that a message is about."""
    place = reason.rpartition("$.")[2].rstrip("`")
    part = {"attention": SubLayerPaths, "feedforward": SubLayerPaths, "positions": Positions}
    if place in ("query", "key", "value"):
        return FusedMap.__struct_fields__
    return part.get(place, Family).__struct_fields__
