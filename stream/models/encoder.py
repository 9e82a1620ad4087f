"""The pretrained encoder: what it computes of texts, and of a prompt beside them.

B examples, L tokens, D width.
"""

from typing import Any

import torch
from msgspec.structs import replace
from torch import nn

from stream.config.backbone import BackboneConfig
from stream.data.batch import TokenBatch
from stream.errors import require
from stream.models.distances import hold_distances
from stream.models.embeddings import make_repeatable
from stream.models.families.catalogue import find_family
from stream.models.families.config import check_pooling, first_position, most_tokens
from stream.models.families.family import Family
from stream.models.layers import Layers
from stream.models.masks import Masks, Reading, places
from stream.models.onednn import convolve_linears
from stream.models.places import AttentionMaps, LinearMap, SubLayer
from stream.models.pretrained import load_body
from stream.models.recomputing import recompute_layers
from stream.models.rotary import check_rotary


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
        make_repeatable(body)
        config: Any = body.config
        self.family = family or find_family(config.model_type, where=type(body).__name__)
        self.pooling = pooling
        self.width = int(config.hidden_size)
        self.most_tokens = most_tokens(config, self.family)
        self._first_position = first_position(config, self.family)
        self._last = (self.most_tokens or 0) - 1  # position, where they are absolute
        self._masks = Masks(config, self.family)
        if self.family.positions.kind == "rotary":
            check_rotary(config)
        if self.family.positions.distances is not None:
            hold_distances(body.get_submodule(self.family.positions.distances))
        self._has_token_types = getattr(config, "type_vocab_size", 0) > 1
        self.features: nn.Module | None = None
        self.prompt: nn.Module | None = None
        self._queried = False
        self.recomputes = False
        """Whether layers keep their inputs alone while a step goes forward."""
        # What came with the encoder; modules that a method adds later are not among them.
        self.pretrained = frozenset(name for name, _ in self.named_parameters())
        self.reading = Reading(causal=self.family.causal)
        self._layers = Layers(body, self.family)
        uses = self._layers.uses
        self.noted: list[object] = [self.reading, *([] if uses is None else [uses])]
        """What changes during a pass; a layer that is computed again finds it as it was."""
        self._check_pooling()

    def _check_pooling(self) -> None:
        """Raise UserError unless texts can be pooled as is asked; let an idle pooler do nothing."""
        check_pooling(self.pooling, self.family, type(self.body).__name__)
        pooler: Any = getattr(self.body, "pooler", None)
        if pooler is not None and self.pooling != "pooler":
            pooler.forward = lambda hidden: hidden  # its parameters are counted, its work not done
        require(
            self.pooling != "pooler" or pooler is not None,
            f"backbone.pooling=pooler: {type(self.body).__name__} has no pooler; choose another of "
            f"{', '.join(self.family.pooling)}",
        )

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """Return one vector a text, [B, D]."""
        return self.states(batch)[0]

    def states(self, batch: TokenBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one vector a text, [B, D], and one a token, [B, L, D], of the same pass."""
        self.reading.begin(batch.attention_mask)
        types = {"token_type_ids": batch.token_type_ids} if self._has_token_types else {}
        inputs = {"input_ids": batch.input_ids, **types}
        if self.prompt is None:
            return self._computed(inputs, batch)
        return self._computed(self._prompted(inputs, batch), batch)

    def _computed(
        self, inputs: dict[str, torch.Tensor], batch: TokenBatch
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what `states` does, of inputs that may have vectors behind the first tokens.

        Args:
            inputs: of transformers' encoder, but for what follows from the mask.
            batch: the tokens alone, and their mask [B, L].
        """
        mask, behind = batch.attention_mask, self.family.leading
        more = inputs["inputs_embeds"].shape[1] - mask.shape[1] if "inputs_embeds" in inputs else 0
        output = self.body(**inputs, **self._placed(batch, more))
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

        Where a text begins with no special token (`Family.leading`), they stand in front of it. The
        heads see the tokens alone. Where positions are absolute, all tokens keep theirs, and the
        prompt stands at the first one, whose embedding is a constant that a trained prompt takes
        up: so a prompt may be longer than the encoder has positions, beside texts of any length.
        Where distances count (``rotary``), the prompt has positions of its own, so that a text may
        reach beyond those that the encoder was pretrained with.

        Args:
            prompt: a module that maps token embeddings [B, L, E] to P vectors a text, [B, P, E].
            queried: it reads, as a second argument, the vectors [B, D] of the texts without any
                prompt: what they are before learning (no dropout, no gradient), by a pass of their
                own.
        """
        self.prompt, self._queried = prompt, queried

    @torch.no_grad()
    def _query(self, inputs: dict[str, torch.Tensor], batch: TokenBatch) -> torch.Tensor:
        """Return the vectors of texts without a prompt and without dropout, [B, D]."""
        learning = self.body.training
        self.body.eval()
        texts, _ = self._computed(inputs, batch)
        self.body.train(learning)
        return texts

    def _prompted(
        self, inputs: dict[str, torch.Tensor], batch: TokenBatch
    ) -> dict[str, torch.Tensor]:
        """Return the inputs with embeddings, the prompt's among them, in place of token ids."""
        assert self.prompt is not None
        body: Any = self.body
        embedded = body.get_input_embeddings()(inputs["input_ids"])
        query = [self._query(inputs, batch)] if self._queried else []
        vectors = self.prompt(embedded, *query)
        found = {"inputs_embeds": self._widened(embedded, vectors)}
        if "token_type_ids" in inputs:
            types = inputs["token_type_ids"]
            found["token_type_ids"] = self._widened(types, types.new_zeros(vectors.shape[:2]))
        return found

    def _widened(self, values: torch.Tensor, between: torch.Tensor) -> torch.Tensor:
        """Return values [B, L, ...] with others [B, P, ...] behind the columns of first tokens."""
        behind = self.family.leading
        return torch.cat([values[:, :behind], between, values[:, behind:]], dim=1)

    def _placed(self, batch: TokenBatch, more: int) -> dict[str, Any]:
        """Return what transformers' encoder needs to know of masks and positions.

        Args:
            batch: the tokens alone, and their mask [B, L].
            more: vectors behind the first tokens, P.
        """
        mask, family, first = batch.attention_mask, self.family, self._first_position
        turned = family.positions.kind == "rotary"
        counted = turned or self._masks.reads_places
        order = places(mask, more, family.leading) if counted else None
        whole = mask
        if more:  # a row that only fills up a batch may have no token
            whole = self._widened(mask, mask.amax(1, keepdim=True).expand(-1, more))
        dtype = next(self.body.parameters()).dtype
        found: dict[str, Any] = {"attention_mask": self._masks.of(whole, order, dtype)}
        if family.causal:
            found["use_cache"] = False
        if turned and order is not None:
            found["position_ids"] = order.clamp(min=0) + first
        elif family.positions.kind == "absolute":  # transformers would count padding, or ids
            found["position_ids"] = self._positions(batch, more)
        return found

    def _positions(self, batch: TokenBatch, more: int) -> torch.Tensor:
        """Return absolute positions, which padding does not count among, [B or 1, L + more].

        Where padding stands changes no state of a token, but in which order gradients are summed:
        counting columns where that is the same, and beside a prompt padding at the last token's
        position, keeps the bits of the runs of earlier versions.
        """
        first, mask = self._first_position, batch.attention_mask
        if more:
            vectors = torch.full_like(mask[:, :1], first).expand(-1, more)
            return self._widened((mask.cumsum(1) - 1).clamp(min=0) + first, vectors)
        if first == 0 and batch.padding == "right":
            columns = torch.arange(batch.width, device=mask.device)[None]
            return columns if batch.width <= self._last + 1 else columns.clamp(max=self._last)
        return (mask.cumsum(1) * mask + (first - 1)).clamp(min=0)

    def reads(self, name: str) -> bool:
        """Whether a prediction reads the parameter ``name``: the pooler may be idle."""
        return self.pooling == "pooler" or not name.startswith("body.pooler.")

    def read_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that a prediction reads, by name."""
        return {name: p for name, p in self.named_parameters() if self.reads(name)}

    def layers(self) -> list[nn.Module]:
        """Return the Transformer layers; one that is used several times is there once."""
        return self._layers.modules()

    @property
    def num_layers(self) -> int:
        """How many layers a text goes through; a layer that is used twice counts twice."""
        return self._layers.num_used

    def sublayers(self) -> list[SubLayer]:
        """Return both adapter places of every layer, attention before feed-forward.

        A layer that is used several times has places for every use.
        """
        return self._layers.sublayers()

    def attention_maps(self) -> list[AttentionMaps]:
        """Return the linear maps of every layer's attention, from the bottom up."""
        return self._layers.attention_maps()

    def inner_maps(self) -> list[LinearMap]:
        """Return the maps that read the inner activations of every feed-forward network."""
        return self._layers.inner_maps()

    def checkpoint_layers(self) -> None:
        """Let layers keep their inputs alone while a step goes forward (`recomputing`)."""
        recompute_layers(self.layers(), self.noted)
        self.recomputes = True

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
        """Return the names of all parameters in the Transformer layers from ``first`` upwards.

        Where norms come before sub-layers, the one behind the last layer is among them.
        """
        above = self.layers()[first:]
        if self.family.final_norm is not None:
            above.append(self._layers.inside(self.body, self.family.final_norm))
        chosen = {id(p) for module in above for p in module.parameters()}
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
