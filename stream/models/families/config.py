"""An encoder's configuration, checked against its family."""

from collections.abc import Mapping
from typing import Any

from stream.config.backbone import BackboneConfig
from stream.errors import choose, require
from stream.models.families.catalogue import find_family
from stream.models.families.family import Family

SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "vocab_size",
    "type_vocab_size",
    "embedding_size",
)
ACTIVATIONS = (
    "hidden_act",
    "hidden_activation",
    "activation",
    "activation_function",
    "dense_act_fn",
)
# With another value, no family computes as it is described.
FIXED = {"chunk_size_feed_forward": 0, "return_dict": True, "quantization_config": None}


def read_config(
    backbone: BackboneConfig, location: str, vocabulary_size: int | None = None
) -> tuple[Any, Family]:
    """Return the encoder's configuration as transformers understands it, and its family.

    Args:
        backbone: the settings.
        location: a folder or an id on the hub; not read for random weights.
        vocabulary_size: the rows of a random encoder's embedding table, unless its shape says it.

    Raises:
        UserError: there is none, its family is not a known one, or a value in it makes the encoder
            compute otherwise than the family does.
    """
    from transformers import CONFIG_MAPPING, PreTrainedConfig

    is_random = backbone.origin == "random"
    if is_random:
        where, given = "backbone.shape", {**backbone.shape}
        if vocabulary_size is not None:
            given.setdefault("vocab_size", vocabulary_size)
    else:
        where = f"config.json of {location}"
        given, _ = PreTrainedConfig.get_config_dict(location, revision=backbone.revision)
        require(isinstance(given, dict), f"{where} is not a JSON object")
    family = find_family(given.get("model_type"), where=where, described=backbone.family)
    _check_fixed(given, family, where)
    kind: Any = CONFIG_MAPPING[given["model_type"]]
    settings = ["model_type", *sorted(vars(kind)["__annotations__"]), *kind.attribute_map]
    settings += family.settings
    for name in given if is_random else ():  # a file may say much that no one asked for
        choose(f"setting of {given['model_type']} in {where}", name, settings)
    config = kind.from_dict(given)
    _check_values(config, family, where)
    return config, family


def _check_fixed(given: Mapping[str, Any], family: Family, where: str) -> None:
    """Raise UserError unless the encoder computes as its family is described."""
    for name, value in {**FIXED, **family.fixed}.items():
        found = given.get(name)
        require(
            found is None or found == value,
            f"{where}: {name}={found!r} cannot be used here; it must be {value!r}",
        )


def _check_values(config: Any, family: Family, where: str) -> None:
    """Raise UserError unless an encoder can be built from the values of a configuration."""
    from transformers.activations import ACT2FN

    for name in SIZES:
        size = getattr(config, name, 1)
        least = 0 if name in family.optional else 1
        require(size >= least, f"{where}: {name}={size} must be at least {least}")
    width, heads = config.hidden_size, config.num_attention_heads
    require(
        width % heads == 0 or hasattr(config, "head_dim") or hasattr(config, "d_kv"),
        f"{where}: hidden_size={width} is not a multiple of num_attention_heads={heads}",
    )
    for name in ACTIVATIONS:
        activation = getattr(config, name, None)
        if isinstance(activation, str):
            choose(f"{name} in {where}", activation, ACT2FN)
    padding, rows = config.pad_token_id, config.vocab_size
    if family.positions.first == "after_padding":
        valid = padding is not None and 0 <= padding < rows
    else:
        valid = padding is None or -rows <= padding < rows  # as torch counts
    require(valid, f"{where}: pad_token_id={padding} is not one of the {rows} tokens")
    most = most_tokens(config, family)
    require(most is None or most >= 1, f"{where}: pad_token_id={padding} leaves no positions")


def first_position(config: Any, family: Family) -> int:
    """Return the position of a text's first token."""
    first = family.positions.first
    return int(config.pad_token_id) + 1 if first == "after_padding" else first


def most_tokens(config: Any, family: Family) -> int | None:
    """Return for how many tokens there are positions; None where distances alone are counted."""
    most = getattr(config, "max_position_embeddings", None)
    return None if most is None else int(most) - first_position(config, family)
