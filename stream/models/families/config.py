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
    "num_key_value_heads",
    "head_dim",
    "d_kv",
    "d_ff",
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
    from transformers import PreTrainedConfig

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
    kind = _config_class(given["model_type"], where)
    settings = [*_settings(kind), *family.settings]
    for name in given if is_random else ():  # a file may say much that no one asked for
        choose(f"setting of {given['model_type']} in {where}", name, settings)
    config = kind.from_dict(given)
    _check_values(config, family, where)
    return config, family


def _config_class(model_type: str, where: str) -> Any:
    """Return the class of configurations of a model type."""
    import transformers

    require(
        model_type in transformers.CONFIG_MAPPING,
        f"{where}: transformers {transformers.__version__}, which is installed, has no "
        f"model_type={model_type!r}; another version may have it",
    )
    return transformers.CONFIG_MAPPING[model_type]


def _settings(kind: Any) -> list[str]:
    """Return what a configuration of this class may say, also by the names of other families."""
    from transformers import PreTrainedConfig

    own = [base for base in kind.__mro__ if base not in PreTrainedConfig.__mro__]
    declared = {name for base in own for name in vars(base).get("__annotations__", ())}
    return ["model_type", *sorted(declared), *kind.attribute_map]


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
        size, real = getattr(config, name, None), config.attribute_map.get(name, name)
        least = 0 if name in family.optional else 1
        require(size is None or size >= least, f"{where}: {real}={size} must be at least {least}")
    _check_heads(config, where)
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


def _check_heads(config: Any, where: str) -> None:
    """Raise UserError unless attention can be divided into heads."""
    width, heads = config.hidden_size, config.num_attention_heads
    real = config.attribute_map
    named = f"{where}: {real.get('hidden_size', 'hidden_size')}={width}"
    queries = f"{real.get('num_attention_heads', 'num_attention_heads')}={heads}"
    of_head = getattr(config, "head_dim", None) or getattr(config, "d_kv", None)
    require(of_head is not None or width % heads == 0, f"{named} is not a multiple of {queries}")
    keys = getattr(config, "num_key_value_heads", None) or heads
    require(
        heads % keys == 0, f"{where}: {queries} is not a multiple of num_key_value_heads={keys}"
    )


def first_position(config: Any, family: Family) -> int:
    """Return the position of a text's first token."""
    first = family.positions.first
    return int(config.pad_token_id) + 1 if first == "after_padding" else first


def most_tokens(config: Any, family: Family) -> int | None:
    """Return for how many tokens there are positions; None where distances alone are counted."""
    most = getattr(config, "max_position_embeddings", None)
    return None if most is None else int(most) - first_position(config, family)


def check_pooling(pooling: str, family: Family, name: str) -> None:
    """Check that a text can be pooled as asked for.

    Raises:
        UserError: not in this family; ``name`` is that of the encoder.
    """
    require(
        not family.causal or pooling not in ("cls", "pooler"),
        f"backbone.pooling={pooling}: the first token of a decoder ({name}) reads no other, so it "
        f"cannot stand for a text; choose from {', '.join(family.pooling)}",
    )
    choose(f"backbone.pooling of {name}", pooling, family.pooling)
