"""The encoder families whose masks, positions and sub-layers are known, and their settings."""

from collections.abc import Callable, Mapping
from typing import Any

from stream.config.backbone import BackboneConfig
from stream.errors import choose, require


def _from_zero(config: Any) -> int:
    """Return the first position where positions are simply counted."""
    return 0


def _after_padding(config: Any) -> int:
    """Return the first position where the one before it is that of padding, as in fairseq."""
    return int(config.pad_token_id) + 1


FIRST_POSITION: Mapping[str, Callable[[Any], int]] = {
    "bert": _from_zero,
    "camembert": _after_padding,
    "data2vec-text": _after_padding,
    "electra": _from_zero,
    "ernie": _from_zero,
    "mpnet": lambda config: 2,  # whatever its configuration calls padding
    "roberta": _after_padding,
    "xlm-roberta": _after_padding,
}
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
# With another value, attention, positions or outputs are not those of the family.
FIXED = {
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "chunk_size_feed_forward": 0,
    "return_dict": True,
    "quantization_config": None,
}


def read_config(backbone: BackboneConfig, location: str, vocabulary_size: int | None = None) -> Any:
    """Return the encoder's configuration as transformers understands it.

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
    _check_family(given, where)
    kind: Any = CONFIG_MAPPING[given["model_type"]]
    settings = ["model_type", *sorted(vars(kind)["__annotations__"])]
    for name in given if is_random else ():  # a file may say much that no one asked for
        choose(f"setting of {given['model_type']} in {where}", name, settings)
    config = kind.from_dict(given)
    _check_values(config, where)
    return config


def _check_family(given: Mapping[str, Any], where: str) -> None:
    """Raise UserError unless the family is known, and computes as that family does."""
    model_type = given.get("model_type")
    require(
        isinstance(model_type, str) and model_type in FIRST_POSITION,
        f"{where}: model_type={model_type!r} is not an encoder family that is known here. Known: "
        f"{', '.join(FIRST_POSITION)}",
    )
    for name, value in FIXED.items():
        found = given.get(name)
        require(
            found is None or found == value,
            f"{where}: {name}={found!r} cannot be used here; it must be {value!r}",
        )


def _check_values(config: Any, where: str) -> None:
    """Raise UserError unless an encoder can be built from the values of a configuration."""
    from transformers.activations import ACT2FN

    for name in SIZES:
        size = getattr(config, name, 1)
        require(size >= 1, f"{where}: {name}={size} must be at least 1")
    width, heads = config.hidden_size, config.num_attention_heads
    require(
        width % heads == 0,
        f"{where}: hidden_size={width} is not a multiple of num_attention_heads={heads}",
    )
    choose(f"hidden_act in {where}", config.hidden_act, ACT2FN)
    padding, rows = config.pad_token_id, config.vocab_size
    if FIRST_POSITION[config.model_type] is _after_padding:
        valid = padding is not None and 0 <= padding < rows
    else:
        valid = padding is None or -rows <= padding < rows  # as torch counts
    require(valid, f"{where}: pad_token_id={padding} is not one of the {rows} tokens")
    require(most_tokens(config) >= 1, f"{where}: pad_token_id={padding} leaves no positions")


def first_position(config: Any) -> int:
    """Return the position of a text's first token."""
    return FIRST_POSITION[config.model_type](config)


def most_tokens(config: Any) -> int:
    """Return for how many tokens there are positions."""
    return int(config.max_position_embeddings) - first_position(config)
