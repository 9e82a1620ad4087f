"""Serves an exported task with the `adapters` library; imports nothing of this program.

Run: python with_adapters.py EXPORT ENCODER BATCH.npz LOGITS.npy. `test_export` compares.
"""

import json
import sys
from pathlib import Path

import adapters
import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModel


def main(export: str, encoder: str, batch: str, out: str) -> None:
    """Load, compute the logits of a batch, write them."""
    options = json.loads(Path(export, "task.json").read_text())["config"]["learner"]
    tensors = load_file(Path(export, "task.safetensors"))
    model = AutoModel.from_pretrained(encoder)
    adapters.init(model)
    config = adapters.DoubleSeqBnConfig(
        non_linearity=options["activation"],
        reduction_factor=model.config.hidden_size / options["size"],
    )
    model.add_adapter("task", config)
    model.set_active_adapters("task")
    head = {name: tensors.pop(f"head.{name}") for name in ("weight", "bias")}
    theirs = {"down": "adapter_down.0", "up": "adapter_up"}
    renamed = {}
    for name, tensor in tensors.items():
        owner, inside, part = name.partition(".dropout.adapter.")
        layer, kind = part.split(".") if inside else ("", "")
        # The library has the adapter of a sub-layer beside its dropout, not behind it.
        renamed[f"{owner}.adapters.task.{theirs[layer]}.{kind}" if inside else name] = tensor
    unexpected = model.load_state_dict(renamed, strict=False).unexpected_keys
    assert not unexpected, unexpected
    inputs = {name: torch.from_numpy(values) for name, values in np.load(batch).items()}
    with torch.no_grad():
        hidden = model.eval()(**inputs).last_hidden_state[:, 0]
        logits = torch.nn.functional.linear(hidden, **head)
    np.save(out, logits.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
