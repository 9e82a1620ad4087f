"""The pretrained encoder: what it computes, and where its sub-layers are.

B examples, L tokens, D width.
"""

from typing import Any

import torch
from msgspec.structs import replace
from torch import nn

from stream.config.backbone import BackboneConfig
from stream.data.batches import TokenBatch
from stream.errors import choose, require
from stream.models.families.catalogue import find_family
from stream.models.families.config import first_position, most_tokens
from stream.models.families.family import Family, FusedMap
from stream.models.onednn import convolve_linears
from stream.models.places import POSITIONS, AttentionMaps, LinearMap, SubLayer, Uses
from stream.models.pretrained import load_body


class Encoder(nn.Module):
    """An encoder of a known family, from token ids to a vector a text or a token."""

    def __init__(self, body: nn.Module, pooling: str = "cls", family: Family | None = None):
        """Take transformers' model; its family is looked up unless it is given.

        Raises:
            UserError: a pooling that the encoder has not, or an unknown family.
        """
        super().__init__()
        self.body = body
        convolve_linears(body)
        config: Any = body.config
        self.family = family or find_family(config.model_type, where=type(body).__name__)
        self.pooling = pooling
        self.width = int(config.hidden_size)
        self.most_tokens = most_tokens(config, self.family)
        self._first_position = first_position(config, self.family)
        # transformers makes that mask from a number on the CPU, which no CUDA graph can hold.
        self._adds_mask = getattr(config, "_attn_implementation", None) == "eager"
        self._has_token_types = getattr(config, "type_vocab_size", 0) > 1
        self.features: nn.Module | None = None
        self.prompt: nn.Module | None = None
        self._queried = False
        # What came with the encoder; modules that a method adds later are not among them.
        self.pretrained = frozenset(name for name, _ in self.named_parameters())
        self._uses = self._count_uses()
        self._check_pooling()

    def _check_pooling(self) -> None:
        """Raise UserError unless texts can be pooled as is asked; let an idle pooler do nothing."""
        choose(f"backbone.pooling of {type(self.body).__name__}", self.pooling, self.family.pooling)
        pooler: Any = getattr(self.body, "pooler", None)
        if pooler is not None and self.pooling != "pooler":
            pooler.forward = lambda hidden: hidden  # its parameters are counted, its work not done
        require(
            self.pooling != "pooler" or pooler is not None,
            f"backbone.pooling=pooler: {type(self.body).__name__} has no pooler; choose another of "
            f"{', '.join(self.family.pooling)}",
        )

    def _count_uses(self) -> Uses | None:
        """Count the uses of layers that are used several times; None where each is used once."""
        config: Any = self.body.config
        layers = self.layers()
        if len(layers) == config.num_hidden_layers:
            return None
        uses = Uses()
        self.body.register_forward_pre_hook(uses.begin_pass)
        for layer in layers:
            layer.register_forward_pre_hook(uses.begin_use)
        return uses

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """Return one vector a text, [B, D]."""
        return self.states(batch)[0]

    def states(self, batch: TokenBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one vector a text, [B, D], and one a token, [B, L, D], of the same pass."""
        types = {"token_type_ids": batch.token_type_ids} if self._has_token_types else {}
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask, **types}
        if self.family.positions.kind != "relative":  # transformers would count padding, or ids
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
        behind = self.family.leading
        if self._adds_mask:
            inputs = {**inputs, "attention_mask": self._added(inputs["attention_mask"])}
        output = self.body(**inputs)
        hidden = output.last_hidden_state
        if more:
            hidden = torch.cat([hidden[:, :behind], hidden[:, behind + more :]], dim=1)
        texts = self._pooled(output, hidden, mask)
        return texts if self.features is None else self.features(texts), hidden

    def _pooled(self, output: Any, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one vector a text, [B, D], from the tokens' [B, L, D], as ``pooling`` says."""
        if self.pooling == "pooler":
            return output.pooler_output
        if self.pooling == "cls":
            return hidden[:, 0]
        if self.pooling == "last":  # a product, so that its gradient is the same at every run
            mask = mask * (mask.flip(1).cumsum(1).flip(1) == 1)
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
        return (mask.cumsum(1) * mask + (self._first_position - 1)).clamp(min=0)

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
        """Return the Transformer layers; one that is used several times is there once."""
        found: list[nn.Module] = [self.body]
        for name in self.family.layers.split("."):
            if name == "*":
                found = [child for module in found for child in module.children()]
            else:
                found = [module.get_submodule(name) for module in found]
        return [*found[0].children()] if "*" not in self.family.layers else found

    @property
    def num_layers(self) -> int:
        """How many layers a text goes through; a layer that is used twice counts twice."""
        config: Any = self.body.config
        return int(config.num_hidden_layers)

    def _used_layers(self) -> list[nn.Module]:
        """Return the layers in the order of their use."""
        layers = self.layers()
        return [layers[use * len(layers) // self.num_layers] for use in range(self.num_layers)]

    def sublayers(self) -> list[SubLayer]:
        """Return both adapter places of every layer, attention before feed-forward."""
        layers, family = self._used_layers(), self.family
        paths = {"attention": family.attention, "feedforward": family.feedforward}
        places = [(use, position) for use in range(len(layers)) for position in POSITIONS]
        norms = [layers[use].get_submodule(paths[position].norm) for use, position in places]
        before = family.norms == "before"
        if before:
            assert family.final_norm is not None, "where norms come before, one comes at the end"
            norms.append(self.body.get_submodule(family.final_norm))
        found = []
        for index, (use, position) in enumerate(places):
            layer, path = layers[use], paths[position]
            reader = layer.get_submodule(path.reader)
            found.append(
                SubLayer(
                    use,
                    position,
                    layer.get_submodule(path.end),
                    reader,
                    norms[index] if before else reader,
                    norms[index + 1] if before else norms[index],
                    self._uses,
                )
            )
        return found

    def attention_maps(self) -> list[AttentionMaps]:
        """Return the linear maps of every layer's attention, from the bottom up."""
        family = self.family
        paths = (family.query, family.key, family.value, family.output)
        return [AttentionMaps(*(self._map(layer, p) for p in paths)) for layer in self.layers()]

    def inner_maps(self) -> list[LinearMap]:
        """Return the maps that read the inner activations of every feed-forward network."""
        return [self._map(layer, self.family.inner) for layer in self.layers()]

    def _map(self, layer: nn.Module, path: str | FusedMap) -> LinearMap:
        """Return a map of a layer."""
        if isinstance(path, str):
            return LinearMap(layer.get_submodule(path))
        config: Any = self.body.config
        return LinearMap(layer.get_submodule(path.map), path, int(config.num_attention_heads))

    def layernorm_names(self) -> set[str]:
        """Return the names of every norm's scale and shift, the embedding's included.

        LayerNorm or RMSNorm, whatever class a family has for it.
        """
        return {
            f"{name}.{parameter}"
            for name, module in self.named_modules()
            if type(module).__name__.endswith(("LayerNorm", "RMSNorm"))
            for parameter, _ in module.named_parameters(recurse=False)
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


def load_encoder(
    config: BackboneConfig, *, vocabulary_size: int, seed: int = 0, leading: int | None = None
) -> Encoder:
    """Load the pretrained encoder in float32, or build one with random weights.

    Args:
        config: the settings of the backbone.
        vocabulary_size: the number of tokens, for random weights.
        seed: of random weights.
        leading: how many special tokens the tokenizer puts in front of a text; by default as many
            as tokenizers of the family do.

    Raises:
        UserError: an encoder that is not whole, not of a known family, or has no pooler to read.
    """
    body, family = load_body(config, vocabulary_size, seed)
    if leading is not None:  # Llama's tokenizer puts one, that of SmolLM2, a Llama too, none
        family = replace(family, leading=min(leading, 1))
    return Encoder(body, config.pooling, family)
