"""A tiny shape of every encoder family, for tests: random weights, two layers of width 16.

A name is that of a model type, or of a variant (``t5_gated``, ``deberta-v3``). Where a
family has a setting that could be mistaken for another of the same value (the width of a head, the
number of heads of keys), the shape keeps them apart.
"""

from typing import Any

from torch import nn

from stream.config.backbone import BackboneConfig
from stream.models.encoder import Encoder, load_encoder
from tests.builders import VOCABULARY

WINDOW = 4
"""Tokens that a layer of local attention sees; made texts are longer."""

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}
FAIRSEQ = {**SIZES, "max_position_embeddings": 34, "pad_token_id": 1}
ENDS = {"bos_token_id": 1, "eos_token_id": 2}
DECODER = {**SIZES, **ENDS, "num_attention_heads": 4, "num_key_value_heads": 2}
WIDE_HEADS = {"head_dim": 8}  # 4 heads of 8 are wider than the encoder
LOCAL = {"layer_types": ["sliding_attention", "full_attention"]}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "pad_token_id": 0,
}
RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0}

FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **SIZES},
    "ernie": {"model_type": "ernie", **SIZES},
    "megatron-bert": {"model_type": "megatron-bert", **SIZES},
    "rembert": {"model_type": "rembert", **SIZES, "input_embedding_size": 8},
    "electra": {"model_type": "electra", **SIZES, "embedding_size": 8},
    "roberta": {"model_type": "roberta", **FAIRSEQ},
    "xlm-roberta": {"model_type": "xlm-roberta", **FAIRSEQ},
    "xlm-roberta-xl": {"model_type": "xlm-roberta-xl", **FAIRSEQ},
    "roberta-prelayernorm": {"model_type": "roberta-prelayernorm", **FAIRSEQ},
    "camembert": {"model_type": "camembert", **FAIRSEQ},
    "data2vec-text": {"model_type": "data2vec-text", **FAIRSEQ},
    "mpnet": {"model_type": "mpnet", **FAIRSEQ},
    "distilbert": {
        "model_type": "distilbert",
        "vocab_size": VOCABULARY,
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 32,
        "max_position_embeddings": 32,
        "pad_token_id": 0,
    },
    "albert": {"model_type": "albert", **SIZES, "num_hidden_layers": 3, "embedding_size": 8},
    "deberta": {"model_type": "deberta", **SIZES, **RELATIVE},
    "deberta-v2": {"model_type": "deberta-v2", **SIZES, **RELATIVE, "position_biased_input": False},
    "deberta-v3": {
        "model_type": "deberta-v2",
        **SIZES,
        **RELATIVE,
        "position_biased_input": False,
        "position_buckets": 4,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
    },
    "modernbert": {
        "model_type": "modernbert",
        **SIZES,
        **ENDS,
        **LOCAL,
        "local_attention": 2 * WINDOW,  # half of it to each side
        "cls_token_id": 1,
        "sep_token_id": 2,
    },
    "nomic_bert": {"model_type": "nomic_bert", **SIZES},
    "gte": {"model_type": "gte", **SIZES},
    "eurobert": {"model_type": "eurobert", **DECODER, "mask_token_id": 3},
    "jina_embeddings_v3": {"model_type": "jina_embeddings_v3", **FAIRSEQ},
    "t5": {"model_type": "t5", **T5, "feed_forward_proj": "relu"},
    "t5_gated": {"model_type": "t5", **T5, "feed_forward_proj": "gated-gelu"},
    "mt5": {"model_type": "mt5", **T5, "feed_forward_proj": "gated-gelu"},
    "umt5": {"model_type": "umt5", **T5, "feed_forward_proj": "gated-gelu"},
    "gpt2": {
        "model_type": "gpt2",
        **ENDS,
        "vocab_size": VOCABULARY,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_inner": 32,
        "n_positions": 32,
        "pad_token_id": 0,
    },
    "llama": {"model_type": "llama", **DECODER},
    "mistral": {"model_type": "mistral", **DECODER, **WIDE_HEADS, "sliding_window": WINDOW},
    "qwen2": {"model_type": "qwen2", **DECODER},
    "qwen3": {"model_type": "qwen3", **DECODER, **WIDE_HEADS},
    "gemma": {"model_type": "gemma", **DECODER, **WIDE_HEADS},
    "gemma2": {
        "model_type": "gemma2",
        **DECODER,
        **WIDE_HEADS,
        **LOCAL,
        "sliding_window": WINDOW,
        "query_pre_attn_scalar": 8,
    },
    "gemma3_text": {
        "model_type": "gemma3_text",
        **DECODER,
        **WIDE_HEADS,
        **LOCAL,
        "sliding_window": WINDOW,
        "query_pre_attn_scalar": 8,
    },
    "smollm3": {"model_type": "smollm3", **DECODER, "no_rope_layers": [1, 0]},
}

ENCODER_DECODERS = ("t5", "t5_gated", "mt5", "umt5")
DECODERS = (
    *("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "smollm3"),
)
POOLING: dict[str, str] = {
    **dict.fromkeys(FAMILIES, "cls"),
    **dict.fromkeys(ENCODER_DECODERS, "mean"),
    **dict.fromkeys(DECODERS, "last"),
}
"""What stands for a text: what each family's users take."""


def family_encoder(name: str, seed: int = 0, **shape: Any) -> Encoder:
    """A tiny encoder of a family, of random weights.

    Args:
        name: of `FAMILIES`.
        seed: of the weights.
        shape: values of the configuration that differ from the family's tiny shape.
    """
    given = {**FAMILIES[name], **shape}
    config = BackboneConfig("tiny", "random", shape=given, pooling=POOLING[name])
    return load_encoder(config, vocabulary_size=VOCABULARY, seed=seed)


def without_dropout(encoder: Encoder) -> Encoder:
    """Have an encoder draw nothing, also where the rate is a number of the module's own."""
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return encoder
