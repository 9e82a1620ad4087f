"""The body of an encoder: loaded whole from its files, or built with random weights."""

import hashlib
import logging
from collections.abc import Collection, Iterator
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
from stream.seeding import preserved_rng_state, seed_torch

LOG = logging.getLogger(__name__)
WEIGHTS = "model.safetensors"
STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
FIRST_TOKEN = ("cls", "pooler")  # ways of pooling that read the vector of a text's first token
# What transformers stored besides weights in the past: constants, of any type.
CONSTANTS = (".position_ids", ".token_type_ids", ".inv_freq", ".attn.bias", ".masked_bias")
NAMED = 3  # so many weights are named in a message


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
        _check_digest(_file(backbone, location, WEIGHTS), backbone.sha256)
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
    _check_whole(report, location, family, body.base_model_prefix)
    _check_types(_file(backbone, location, "config.json").parent, backbone.name)
    broken = [name for name, p in body.named_parameters() if not torch.isfinite(p).all()]
    require(not broken, f"weights in {location} are not finite numbers: {_listed(broken)}")
    return body


def _leave_out_lacking_pooler(body: Any, missing: set[str]) -> None:
    """Remove the pooler if the checkpoint has none: it is not read, and its values are random."""
    idle = {name for name in missing if name.startswith("pooler.")}
    if idle:
        body.pooler = None
        missing -= idle


def _check_whole(report: dict[str, Any], location: str, family: Family, prefix: str) -> None:
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


def _check_types(folder: Path, name: str) -> None:
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


def _file(backbone: BackboneConfig, location: str, name: str) -> Path:
    """Return the path of one of the backbone's files, which is fetched if it is on the hub."""
    from transformers.utils.hub import cached_file

    return Path(str(cached_file(location, name, revision=backbone.revision)))


def _check_digest(path: Path, expected: str) -> None:
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
