"""What people would use instead: a loop by hand, and Hugging Face's Trainer with other libraries.

Run through `benchmarks.speed.steps`. Every rival has the same signature: (folder of the encoder,
training rows, outputs K, epochs, device, folder for its files); it learns and returns a function
that scores rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

BATCH, RATE, SIZE = 32, 1e-3, 64
Rows = list[dict[str, Any]]
Predict = Callable[[Rows], Any]


class Bottleneck(nn.Module):
    """A Houlsby adapter behind a dropout."""

    def __init__(self, dropout: nn.Module, width: int):
        super().__init__()
        self.dropout = dropout
        self.down, self.up = nn.Linear(width, SIZE), nn.Linear(SIZE, width)
        nn.init.normal_(self.up.weight, std=1e-3)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map hidden states [..., D] to the same shape."""
        hidden = self.dropout(hidden)
        return hidden + self.up(nn.functional.gelu(self.down(hidden)))


def by_hand(
    location: str, train: Rows, outputs: int, epochs: int, device: torch.device, folder: str
) -> Predict:
    """The loop of a notebook: Houlsby adapters put in by hand, dynamic padding, AdamW."""
    from torch.utils.data import DataLoader
    from transformers import AutoModelForSequenceClassification

    del folder
    model: Any = AutoModelForSequenceClassification.from_pretrained(location, num_labels=outputs)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("LayerNorm" in name or name.startswith("classifier"))
    for layer in model.base_model.encoder.layer:
        for owner in (layer.attention.output, layer.output):
            owner.dropout = Bottleneck(owner.dropout, model.config.hidden_size)
    model.to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE)
    loader: Any = DataLoader(train, BATCH, shuffle=True, collate_fn=_collator(location, None))  # type: ignore[arg-type]
    steps = epochs * len(loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    model.train()
    for _ in range(epochs):
        for batch in loader:
            loss = model(**{name: tensor.to(device) for name, tensor in batch.items()}).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()

    def predict(rows: Rows) -> list[torch.Tensor]:
        model.eval()
        found = []
        with torch.no_grad():
            for batch in DataLoader(rows, BATCH, collate_fn=_collator(location, None)):  # type: ignore[arg-type]
                inputs = {name: tensor.to(device) for name, tensor in batch.items()}
                found.append(model(**inputs).logits.cpu())
        return found

    return predict


def _collator(location: str, padded: int | None) -> Callable[[Rows], Any]:
    """Return Hugging Face's collator: to the longest of a batch, or to a fixed length."""
    from transformers import AutoTokenizer, DataCollatorWithPadding

    tokenizer: Any = AutoTokenizer.from_pretrained(location)
    fixed: Any = {"padding": "max_length", "max_length": padded} if padded else {}
    return DataCollatorWithPadding(tokenizer, **fixed)


def trainer_of(make: Any, model: Any, train: Rows, epochs: int, folder: str, collator: Any) -> Any:
    """Return a Trainer set up as its documentation does.

    Args:
        make: the Trainer's class.
        model: what it trains.
        train: training rows.
        epochs: passes over them.
        folder: for its files.
        collator: makes a batch of rows.
    """
    from transformers import TrainingArguments

    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        num_train_epochs=epochs,
        learning_rate=RATE,
        bf16=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    return make(model=model, args=arguments, train_dataset=train, data_collator=collator)


def _trained(
    make: Any, model: Any, train: Rows, epochs: int, folder: str, collator: Any
) -> Predict:
    """Train with the Trainer of `trainer_of`; return its `predict`."""
    trainer = trainer_of(make, model, train, epochs, folder, collator)
    trainer.train()
    return trainer.predict


def with_lora(model: nn.Module, names: Sequence[str], **more: Any) -> Any:
    """Return a model with peft's LoRA of rank 8.

    Args:
        model: the model; it is changed.
        names: how the names of the linear maps end that are changed.
        more: of `LoraConfig`.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=8, target_modules=[*names], **more)
    return get_peft_model(model, config)  # type: ignore[arg-type]


def lora(
    location: str, train: Rows, outputs: int, epochs: int, device: torch.device, folder: str
) -> Predict:
    """Trainer with peft's LoRA of rank 8 on queries and values."""
    from peft import TaskType
    from transformers import AutoModelForSequenceClassification, Trainer

    del device
    model = AutoModelForSequenceClassification.from_pretrained(location, num_labels=outputs)
    model = with_lora(model, ["query", "value"], task_type=TaskType.SEQ_CLS)
    return _trained(Trainer, model, train, epochs, folder, _collator(location, None))


def houlsby(padded: int | None) -> Callable[..., Predict]:
    """Return AdapterTrainer with the `adapters` library's double bottleneck."""

    def rival(
        location: str, train: Rows, outputs: int, epochs: int, device: torch.device, folder: str
    ) -> Predict:
        from adapters import AdapterTrainer, AutoAdapterModel, DoubleSeqBnConfig

        del device
        model: Any = AutoAdapterModel.from_pretrained(location)
        factor = model.config.hidden_size / SIZE
        model.add_adapter("task", DoubleSeqBnConfig(reduction_factor=factor, non_linearity="gelu"))
        model.add_classification_head("task", num_labels=outputs)
        model.train_adapter("task")  # freezes the rest, and activates it
        model.set_active_adapters("task")
        collator = _collator(location, padded)
        return _trained(AdapterTrainer, model, train, epochs, folder, collator)

    return rival


RIVALS: dict[str, tuple[str, Callable[..., Predict]]] = {
    "loop by hand, float32": ("transformers", by_hand),
    "Trainer + peft LoRA": ("peft", lora),
    "Trainer + adapters": ("adapters", houlsby(None)),
    "Trainer + adapters, padded to 128": ("adapters", houlsby(128)),
}
"""The library that each needs, and its function."""
