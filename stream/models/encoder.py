"""The pretrained encoder: what it computes, and where its sub-layers are.

B examples, L tokens, D width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stream.config.backbone import BackboneConfig
from stream.data.batches import TokenBatch
from stream.errors import require
from stream.models.families import first_position
from stream.models.onednn import convolve_linears
from stream.models.pretrained import load_body

POSITIONS = ("attention", "feedforward")


@dataclass(frozen=True)
class SubLayer:
    """A place for an adapter: the module whose ``dropout`` ends a projection.

    Attributes:
        layer: index of the Transformer layer.
        position: ``attention`` or ``feedforward``.
        owner: the module that holds ``dropout`` and ``LayerNorm``.
        reader: the module that reads the sub-layer's input first, as its first argument.
    """

    layer: int
    position: str
    owner: nn.Module
    reader: nn.Module

    @property
    def dropout(self) -> nn.Module:
        """The dropout at the end of the projection, or what stands in its place now."""
        dropout = self.owner.dropout
        assert isinstance(dropout, nn.Module)
        return dropout

    @property
    def norm(self) -> nn.Module:
        """The LayerNorm behind the residual addition."""
        norm = self.owner.LayerNorm
        assert isinstance(norm, nn.Module)
        return norm

    def put(self, module: nn.Module) -> None:
        """Put a module in the place of the dropout."""
        self.owner.dropout = module


class Encoder(nn.Module):
    """A post-LayerNorm encoder of the BERT family, from token ids to a vector a text or a token."""

    def __init__(self, body: nn.Module, pooling: str = "cls"):
        super().__init__()
        self.body = body
        convolve_linears(body)
        self.pooling = pooling
        config: Any = body.config
        self.width = int(config.hidden_size)
        self.most_tokens = int(config.max_position_embeddings) - 2  # few enough in every family
        self._first_position = first_position(config)
        # transformers makes that mask from a number on the CPU, which no CUDA graph can hold.
        self._adds_mask = getattr(config, "_attn_implementation", None) == "eager"
        self._has_token_types = getattr(config, "type_vocab_size", 0) > 1
        self.features: nn.Module | None = None
        self.prompt: nn.Module | None = None
        self._queried = False
        # What came with the encoder; modules that a method adds later are not among them.
        self.pretrained = frozenset(name for name, _ in self.named_parameters())
        pooler: Any = getattr(body, "pooler", None)
        if pooler is not None and pooling != "pooler":
            pooler.forward = lambda hidden: None  # its parameters are counted, its work is not done
        require(
            pooling != "pooler" or getattr(body, "pooler", None) is not None,
            f"backbone.pooling=pooler: {type(body).__name__} has no pooler; use cls or mean",
        )

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """Return one vector a text, [B, D]."""
        return self.states(batch)[0]

    def states(self, batch: TokenBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one vector a text, [B, D], and one a token, [B, L, D], of the same pass."""
        types = {"token_type_ids": batch.token_type_ids} if self._has_token_types else {}
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask, **types}
        if self._first_position:  # transformers would count ids that it takes for padding
            inputs["position_ids"] = self._positions(batch.attention_mask)
        if self.prompt is None:
            return self._computed(inputs, batch.attention_mask)
        return self._computed(self._prompted(inputs), batch.attention_mask)

    def _computed(
        self, inputs: dict[str, torch.Tensor], mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what `states` does, of inputs that may have vectors behind the first token.

        Args:
            inputs: of transformers' encoder.
            mask: of the tokens alone, [B, L].
        """
        more = inputs["attention_mask"].shape[1] - mask.shape[1]
        if self._adds_mask:
            inputs = {**inputs, "attention_mask": self._added(inputs["attention_mask"])}
        output = self.body(**inputs)
        hidden = output.last_hidden_state
        if more:
            hidden = torch.cat([hidden[:, :1], hidden[:, 1 + more :]], dim=1)
        texts = self._pooled(output, hidden, mask)
        return texts if self.features is None else self.features(texts), hidden

    def _pooled(self, output: Any, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one vector a text, [B, D], from the tokens' [B, L, D], as ``pooling`` says."""
        if self.pooling == "pooler":
            return output.pooler_output
        if self.pooling == "cls":
            return hidden[:, 0]
        weights = mask[..., None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1)

    @property
    def embedding_width(self) -> int:
        """Width E of a token's embedding, which a soft prompt needs: ELECTRA's is not D."""
        body: Any = self.body
        return int(body.get_input_embeddings().embedding_dim)

    def insert_features(self, module: nn.Module, width: int) -> None:
        """Insert a module between the vector of a text and the heads.

        Args:
            module: maps vectors [B, D] to what heads read, [B, width].
            width: `width` from now on.
        """
        self.features, self.width = module, width

    def insert_prompt(self, prompt: nn.Module, *, queried: bool = False) -> None:
        """Insert vectors behind the first token's embedding of every text.

        All tokens keep their positions, and the heads see them alone; the prompt stands at the
        first position, whose embedding is a constant that a trained prompt takes up. So a prompt
        may be longer than the encoder has positions, beside texts of any length.

        Args:
            prompt: a module that maps token embeddings [B, L, E] to P vectors a text, [B, P, E].
            queried: it reads, as a second argument, the vectors [B, D] of the texts without any
                prompt: what they are before learning (no dropout, no gradient), by a pass of their
                own.
        """
        self.prompt, self._queried = prompt, queried

    @torch.no_grad()
    def _query(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the vectors of texts without a prompt and without dropout, [B, D]."""
        learning = self.body.training
        self.body.eval()
        texts, _ = self._computed(inputs, inputs["attention_mask"])
        self.body.train(learning)
        return texts

    def _prompted(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the inputs with the prompt's vectors in place of the token ids."""
        assert self.prompt is not None
        body: Any = self.body
        embedded = body.get_input_embeddings()(inputs["input_ids"])
        query = [self._query(inputs)] if self._queried else []
        vectors = self.prompt(embedded, *query)
        mask, start = inputs["attention_mask"], self._first_position
        positions = (mask.cumsum(1) - 1).clamp(min=0) + start

        def widened(values: torch.Tensor, between: torch.Tensor) -> torch.Tensor:
            return torch.cat([values[:, :1], between, values[:, 1:]], dim=1)

        same = mask[:, :1].expand(-1, vectors.shape[1])
        found = {
            "inputs_embeds": widened(embedded, vectors),
            "attention_mask": widened(mask, same),
            "position_ids": widened(positions, torch.full_like(same, start)),
        }
        if "token_type_ids" in inputs:
            found["token_type_ids"] = widened(inputs["token_type_ids"], torch.zeros_like(same))
        return found

    def _positions(self, mask: torch.Tensor) -> torch.Tensor:
        """Return the positions of tokens, which padding does not count among, [B, L]."""
        return mask.cumsum(1) * mask + (self._first_position - 1)

    def _added(self, mask: torch.Tensor) -> torch.Tensor:
        """Return what a mask [B, L] adds to the attention scores, [B, 1, 1, L]."""
        dtype = next(self.body.parameters()).dtype
        return (1 - mask[:, None, None].to(dtype)) * torch.finfo(dtype).min

    def reads(self, name: str) -> bool:
        """Whether a prediction reads the parameter ``name``: the pooler may be idle."""
        return self.pooling == "pooler" or not name.startswith("body.pooler.")

    def read_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that a prediction reads, by name."""
        return {name: p for name, p in self.named_parameters() if self.reads(name)}

    def layers(self) -> list[nn.Module]:
        """Return the Transformer layers."""
        inner: Any = self.body
        return list(inner.encoder.layer)

    def sublayers(self) -> list[SubLayer]:
        """Return both adapter places of every layer, attention before feed-forward.

        Raises:
            UserError: a layer without exactly two sub-layers that end in dropout and LayerNorm.
        """
        found = []
        for index, layer in enumerate(self.layers()):
            owners = [
                module
                for module in layer.modules()
                if isinstance(getattr(module, "LayerNorm", None), nn.LayerNorm)
                and isinstance(getattr(module, "dropout", None), nn.Module)
            ]
            readers = [
                module
                for name, module in layer.named_children()
                if name in ("attention", "intermediate")
            ]
            require(
                len(owners) == len(readers) == 2,
                f"{type(self.body).__name__}: layer {index} has {len(owners)} sub-layers that end "
                "in dropout and LayerNorm; adapters need a post-LayerNorm encoder of the BERT "
                "family (BERT, RoBERTa, ELECTRA, MPNet), which has 2",
            )
            places = zip(POSITIONS, owners, readers, strict=True)
            found += [SubLayer(index, *place) for place in places]
        return found

    def layernorm_names(self) -> set[str]:
        """Return the names of every LayerNorm's scale and shift, the embedding's included."""
        return {
            f"{name}.{parameter}"
            for name, module in self.named_modules()
            if isinstance(module, nn.LayerNorm)
            for parameter, _ in module.named_parameters()
        }

    def layer_names(self, first: int) -> set[str]:
        """Return the names of all parameters in the Transformer layers from ``first`` upwards."""
        chosen = {id(p) for layer in self.layers()[first:] for p in layer.parameters()}
        return {name for name, p in self.named_parameters() if id(p) in chosen}

    def num_parameters(self) -> int:
        """Return the parameters of the whole encoder, an idle pooler included."""
        return sum(parameter.numel() for parameter in self.parameters())

    def num_layer_parameters(self) -> int:
        """Return the parameters of the Transformer layers, without embeddings and pooler."""
        return sum(p.numel() for layer in self.layers() for p in layer.parameters())


def load_encoder(config: BackboneConfig, *, vocabulary_size: int, seed: int = 0) -> Encoder:
    """Load the pretrained encoder in float32, or build one with random weights.

    Args:
        config: the settings of the backbone.
        vocabulary_size: the number of tokens, for random weights.
        seed: of random weights.

    Raises:
        UserError: an encoder that is not whole, not of a known family, or has no pooler to read.
    """
    return Encoder(load_body(config, vocabulary_size, seed), config.pooling)
