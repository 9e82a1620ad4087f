"""Which encoders are measured: common sizes, with random weights."""

from collections.abc import Mapping
from typing import Any

TOKENS = 128
BATCH = 32

SIZES: Mapping[str, Mapping[str, Any]] = {
    "BERT-base": {"model_type": "bert", "vocab_size": 30522},
    "DistilBERT-base": {"model_type": "distilbert", "vocab_size": 30522},
    "ALBERT-base": {
        "model_type": "albert",
        "vocab_size": 30000,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "DeBERTa-v3-base": {
        "model_type": "deberta-v2",
        "vocab_size": 128100,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "type_vocab_size": 0,
        "relative_attention": True,
        "position_biased_input": False,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 256,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "layer_norm_eps": 1e-7,
    },
    "ModernBERT-base": {"model_type": "modernbert", "vocab_size": 50368},
    "T5-base, encoder": {
        "model_type": "t5",
        "vocab_size": 32128,
        "d_model": 768,
        "d_kv": 64,
        "d_ff": 3072,
        "num_layers": 12,
        "num_heads": 12,
    },
    "GPT-2": {"model_type": "gpt2", "vocab_size": 50257, "pad_token_id": 50256},
    "Qwen3-0.6B": {
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 1024,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "max_position_embeddings": 40960,
        "pad_token_id": 151643,
    },
    "Gemma-3-270m": {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "hidden_size": 640,
        "num_hidden_layers": 18,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "intermediate_size": 2048,
        "sliding_window": 512,
        "max_position_embeddings": 32768,
        "pad_token_id": 0,
    },
    "Llama-3.2-1B": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 8192,
        "max_position_embeddings": 131072,
        "pad_token_id": 128004,
    },
}
"""Configurations by the names of the published encoders that have these sizes."""
