"""Where a method can change an encoder: its sub-layers and their linear maps.

B examples, L tokens, D width. Everything is found through the encoder's `Family`; no method knows
a family. What is inserted acts through hooks whose methods belong to objects, so that a copy of the
encoder (`stream.models.bf16`) gets hooks of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stream.models.families.family import FusedMap

POSITIONS = ("attention", "feedforward")


class Uses:
    """Counts how often a layer was used in a pass: some encoders use one layer several times."""

    def __init__(self) -> None:
        self.current = -1

    def begin_pass(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Start to count; a forward pre-hook of the body."""
        del module, args
        self.current = -1

    def begin_use(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Count a use; a forward pre-hook of each layer."""
        del module, args
        self.current += 1


@dataclass(frozen=True)
class SubLayer:
    """A sub-layer x + F(x) of one layer: a place for an adapter.

    Attributes:
        layer: index of the Transformer layer, from 0; of a layer that is used several times, index
            of the use.
        position: ``attention`` or ``feedforward``.
        end: the module whose output is F(x), [B, L, D].
        reader: the module that reads the sub-layer's input first: x, or its norm.
        residual: the module that reads x first.
        norm: the norm that reads the sum x + F(x): the sub-layer's own, or where norms come before
            sub-layers that of the next one.
        uses: counts the uses of the layer, if it is used several times.
    """

    layer: int
    position: str
    end: nn.Module
    reader: nn.Module
    residual: nn.Module
    norm: nn.Module
    uses: Uses | None = None

    def named(self, name: str) -> str:
        """Return the name of something inserted here: the uses of a layer each have their own."""
        return name if self.uses is None else f"{name}_{self.layer}"


class Insertion:
    """What a method inserts at the end of a sub-layer: `change` replaces F(x).

    Its modules become children of the place's ``end``. A subclass defines `change`.
    """

    def __init__(self, place: SubLayer, modules: Mapping[str, nn.Module], reads: str = ""):
        """Insert modules by name.

        Args:
            place: the sub-layer.
            modules: what is inserted, by name.
            reads: what else `change` needs: ``input`` (what the sub-layer's maps read),
                ``residual`` (x), or nothing.
        """
        self._uses, self._use = place.uses, place.layer
        self._source: torch.Tensor | None = None
        self._end = place.end
        for name, module in modules.items():
            place.end.add_module(place.named(name), module)
        place.end.register_forward_hook(self._at_end)
        if reads:
            source = place.reader if reads == "input" else place.residual
            source.register_forward_pre_hook(self._note, with_kwargs=True)

    @property
    def training(self) -> bool:
        """Whether the encoder learns."""
        return self._end.training

    def change(self, f: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Return what stands in place of F(x), [B, L, D].

        Args:
            f: F(x), [B, L, D].
            source: what ``reads`` asked for, [B, L, D]; F(x) otherwise.
        """
        raise NotImplementedError

    @property
    def _is_here(self) -> bool:
        """Whether it is this use of the layer."""
        return self._uses is None or self._uses.current == self._use

    def _note(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember what `change` reads; a forward pre-hook."""
        del module
        if self._is_here:
            self._source = first_input(args, kwargs)

    def _at_end(self, module: nn.Module, args: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Replace the output of the sub-layer; a forward hook."""
        del module, args
        if not self._is_here:
            return output
        source, self._source = self._source, None
        return self.change(output, output if source is None else source)


def first_input(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """Return the hidden states that a module was called with, [B, L, D]."""
    return args[0] if args else kwargs["hidden_states"]


@dataclass(frozen=True)
class LinearMap:
    """A linear map D_in -> D_out of the encoder, which may be a part of a larger one.

    Attributes:
        module: computes it; what a hook of it sees may have more outputs.
        fused: which part of the module's outputs it is; None if all.
        heads: attention heads of the module, for parts that follow one another in every head.
        added: the map's bias, if it is added behind the module.
    """

    module: nn.Module
    fused: FusedMap | None = None
    heads: int = 1
    added: torch.Tensor | None = None

    @property
    def in_features(self) -> int:
        """D_in."""
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        """D_out."""
        return self.weight.shape[0]

    @property
    def weight(self) -> torch.Tensor:
        """The weights as in `nn.Linear`, [D_out, D_in]; a view."""
        inner: Any = self.module
        stored = inner.weight if isinstance(inner, nn.Linear) else inner.weight.T  # GPT-2's Conv1D
        return self._part(stored.T).T

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias, [D_out]; a view."""
        if self.added is not None:
            return self.added
        inner: Any = self.module
        return None if inner.bias is None else self._part(inner.bias)

    def of(self, output: torch.Tensor) -> torch.Tensor:
        """Return this map's outputs [..., D_out] among those of the module."""
        own = self._part(output)
        return own if self.added is None else own + self.added

    def placed(self, output: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Return the module's output with ``own`` [..., D_out] in place of this map's."""
        if self.fused is None:
            return own
        fused = self.fused
        own = own if self.added is None else own - self.added
        parts = list(self._split(output).unbind(self._axis))
        parts[fused.part] = own.unflatten(-1, (self.heads, -1)) if fused.by_head else own
        return torch.stack(parts, self._axis).flatten(-3 if fused.by_head else -2)

    @property
    def _axis(self) -> int:
        """The axis of the parts in what `_split` returns."""
        return -2

    def _split(self, values: torch.Tensor) -> torch.Tensor:
        """Return the module's outputs by parts: [..., heads, parts, width] or [..., parts, D]."""
        assert self.fused is not None
        if self.fused.by_head:
            return values.unflatten(-1, (self.heads, self.fused.of, -1))
        return values.unflatten(-1, (self.fused.of, -1))

    def _part(self, values: torch.Tensor) -> torch.Tensor:
        """Return this map's share of the last axis."""
        if self.fused is None:
            return values
        own = self._split(values).select(self._axis, self.fused.part)
        return own.flatten(-2) if self.fused.by_head else own


@dataclass(frozen=True)
class AttentionMaps:
    """The linear maps of one layer's attention."""

    query: LinearMap
    key: LinearMap
    value: LinearMap
    output: LinearMap
