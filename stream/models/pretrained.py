"""The body of an encoder: loaded whole from its files, or built with random weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stream.config.backbone import BackboneConfig
from stream.config.paths import locate
from stream.data.text_encoder import TextEncoder
from stream.errors import UserError, choose, first_line, require
from stream.models.families.config import check_pooling, most_tokens, read_config
from stream.models.families.family import Family
from stream.models.families.paths import check_paths
from stream.models.weights import WEIGHTS, check_digest, check_finite, check_types, check_whole
from stream.seeding import preserved_rng_state, seed_torch

FIRST_TOKEN = ("cls", "pooler")  # ways of pooling that read the vector of a text's first token


def check_backbone(backbone: BackboneConfig) -> None:
    """Check what can be checked before texts are encoded.

    Raises:
        UserError: the encoder's family is not known, has not that pooling or computes no attention
            as asked for, or it has too few positions.
    """
    with _loading(backbone):
        config, family = read_config(backbone, locate(backbone))
        body, most = _body_class(config, family), most_tokens(config, family)
    check_pooling(backbone.pooling, family, body.__name__)
    ways = ["auto", *(a for a in family.attentions if a != "sdpa" or body._supports_sdpa)]
    choose(f"backbone.attention of {body.__name__}", backbone.attention, ways)
    require(
        most is None or backbone.max_length <= most,
        f"backbone.max_length={backbone.max_length}: {backbone.name!r} has positions for {most} "
        f"tokens; choose backbone.max_length={most} or less",
    )


def with_idle_pooling(backbone: BackboneConfig) -> BackboneConfig:
    """Return the settings for a run that pools no texts, with a pooling that the family has.

    The default, ``cls``, is none of a decoder's, and no other can be asked for where none acts.
    """
    with _loading(backbone):
        _, family = read_config(backbone, locate(backbone))
    if backbone.pooling in family.pooling:
        return backbone
    return replace(backbone, pooling=family.pooling[0])


def check_vocabulary(backbone: BackboneConfig, texts: TextEncoder) -> None:
    """Check that the tokenizer fits the encoder.

    Raises:
        UserError: a token has no row in the embedding table, or a text no first token to pool.
    """
    with _loading(backbone):
        config, family = read_config(backbone, locate(backbone), texts.vocabulary_size)
    require(
        texts.vocabulary_size <= config.vocab_size,
        f"the tokenizer of backbone {backbone.name!r} has {texts.vocabulary_size:,} tokens, its "
        f"embedding table {config.vocab_size:,} rows (vocab_size): they do not belong together",
    )
    others = [way for way in family.pooling if way not in FIRST_TOKEN]
    require(
        backbone.pooling not in FIRST_TOKEN or texts.leading > 0,
        f"backbone.pooling={backbone.pooling}: the tokenizer of {backbone.name!r} puts no special "
        f"token (such as [CLS]) in front of a text; choose from {', '.join(others)}",
    )


def load_body(
    backbone: BackboneConfig, vocabulary_size: int, seed: int
) -> tuple[nn.Module, Family]:
    """Return the pretrained body in float32 or one with random weights, and its family.

    Args:
        backbone: the settings.
        vocabulary_size: the number of tokens, for random weights.
        seed: of random weights.

    Raises:
        UserError: files that are missing or damaged, a family that is not known or describes
            another encoder, weights that are not exactly those of the encoder, or a wrong digest.
    """
    with preserved_rng_state(), _loading(backbone):
        location = locate(backbone)
        config, family = read_config(backbone, location, vocabulary_size)
        if backbone.origin == "random":
            seed_torch(seed)
            kind = _model_class(family)
            build = getattr(kind, "from_config", None) or kind._from_config
            body = build(config, **_attention(backbone, family))
        else:
            body = _pretrained_body(backbone, location, family)
        check_paths(body, family)
        return body, family


def _model_class(family: Family) -> Any:
    """Return the class of transformers that loads encoders of a family, or finds theirs."""
    import transformers

    name = family.model or "AutoModel"
    require(
        hasattr(transformers, name),
        f"transformers {transformers.__version__}, which is installed, has no {name}, the encoder "
        f"of the family of {family.model_types[0]}; another version may have it",
    )
    return getattr(transformers, name)


def _body_class(config: Any, family: Family) -> Any:
    """Return the class of transformers of an encoder with this configuration."""
    kind = _model_class(family)
    known = getattr(kind, "_model_mapping", None)
    return kind if known is None else known[type(config)]


def _attention(backbone: BackboneConfig, family: Family) -> dict[str, str]:
    """Return what transformers is told about attention; it chooses itself where it may."""
    chosen = backbone.attention
    if chosen == "auto" and len(family.attentions) == 1:
        chosen = family.attentions[0]
    return {} if chosen == "auto" else {"attn_implementation": chosen}


def _pretrained_body(backbone: BackboneConfig, location: str, family: Family) -> nn.Module:
    """Load the weights, and check that they are all there and all finite."""
    files = [Path(location, name) for name in (WEIGHTS, f"{WEIGHTS}.index.json")]
    require(
        backbone.origin == "hub" or any(path.is_file() for path in files),
        f"no {WEIGHTS} in {location}; weights in another format, such as pytorch_model.bin, can be "
        "loaded by transformers once and saved with save_pretrained",
    )
    if backbone.sha256 is not None:
        check_digest(_file(backbone, location, WEIGHTS), backbone.sha256)
    body, report = _model_class(family).from_pretrained(
        location,
        revision=backbone.revision,
        dtype=torch.float32,
        use_safetensors=True,
        trust_remote_code=False,
        ignore_mismatched_sizes=True,  # the report has them, and what it has is refused
        output_loading_info=True,
        **_attention(backbone, family),
    )
    if backbone.pooling != "pooler":
        _leave_out_lacking_pooler(body, report["missing_keys"])
    check_whole(report, location, family, body.base_model_prefix)
    check_types(_file(backbone, location, "config.json").parent, backbone.name)
    check_finite(body, location)
    return body


def _leave_out_lacking_pooler(body: Any, missing: set[str]) -> None:
    """Remove the pooler if the checkpoint has none: it is not read, and its values are random."""
    idle = {name for name in missing if name.startswith("pooler.")}
    if idle:
        body.pooler = None
        missing -= idle


def _file(backbone: BackboneConfig, location: str, name: str) -> Path:
    """Return the path of one of the backbone's files, which is fetched if it is on the hub."""
    from transformers.utils.hub import cached_file

    return Path(str(cached_file(location, name, revision=backbone.revision)))


@contextmanager
def _loading(backbone: BackboneConfig) -> Iterator[None]:
    """Keep transformers from printing; what it raises becomes one line.

    Raises:
        UserError: transformers cannot read or build the encoder.
    """
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from transformers.utils import logging as messages

    messages.disable_progress_bar()
    before = messages.get_verbosity()
    messages.set_verbosity_error()
    try:
        yield
    except UserError:
        raise
    except (
        *(OSError, ImportError, RuntimeError, AssertionError, LookupError, TypeError, ValueError),
        *(AttributeError, ArithmeticError, SafetensorError, StrictDataclassError),
    ) as error:
        where = "backbone.shape" if backbone.origin == "random" else backbone.location
        reason = f"{type(error).__name__}: {_said(error)}"
        if isinstance(error, SafetensorError):
            reason += "; a file with weights is damaged or not complete, get it again"
        raise UserError(f"cannot load backbone {backbone.name!r} ({where}): {reason}") from error
    finally:
        messages.set_verbosity(before)


def _said(error: Exception) -> str:
    """Return an error's first line, with the next if it ends in a colon."""
    first, *others = str(error).strip().splitlines() or [first_line(error)]
    return f"{first} {others[0].strip()}" if first.endswith(":") and others else first
