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
        whole: the layer.
        uses: counts the uses of the layer, if it is used several times.
    """

    layer: int
    position: str
    end: nn.Module
    reader: nn.Module
    residual: nn.Module
    norm: nn.Module
    whole: nn.Module
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


def with_first(
    hidden: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a module with other hidden states, [B, L, D]."""
    return ((hidden, *args[1:]), kwargs) if args else ((), {**kwargs, "hidden_states": hidden})


@dataclass(frozen=True)
class Part:
    """Which of a module's outputs are those of one linear map.

    Attributes:
        fused: which part they are; None if the map has all of them.
        heads: attention heads of the module, for parts that follow one another in every head.
        added: the map's bias, if it is added behind the module.
    """

    fused: FusedMap | None = None
    heads: int = 1
    added: torch.Tensor | None = None

    def of(self, output: torch.Tensor) -> torch.Tensor:
        """Return the map's outputs [..., D_out] among those of the module."""
        own = self.cut(output)
        return own if self.added is None else own + self.added

    def placed(self, output: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Return the module's output with ``own`` [..., D_out] in place of the map's."""
        if self.fused is None:
            return own
        own = own if self.added is None else own - self.added
        parts = list(self._split(output).unbind(-2))
        parts[self.fused.part] = own.reshape(parts[self.fused.part].shape)
        return torch.stack(parts, -2).view_as(output)

    def plus(self, output: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """Return the module's output with ``change`` [..., D_out] added to the map's."""
        if self.fused is None:
            return output + change
        parts = list(self._split(output).unbind(-2))
        parts[self.fused.part] = parts[self.fused.part] + change.reshape(parts[0].shape)
        return torch.stack(parts, -2).view_as(output)

    def cut(self, values: torch.Tensor) -> torch.Tensor:
        """Return the map's share of the last axis of the module's outputs, weights or biases."""
        if self.fused is None:
            return values
        own = self._split(values).select(-2, self.fused.part)
        return own.flatten(-2) if self.fused.by_head else own

    def _split(self, values: torch.Tensor) -> torch.Tensor:
        """Return the module's outputs by parts: [..., heads, parts, width] or [..., parts, D]."""
        assert self.fused is not None
        if self.fused.by_head:
            return values.unflatten(-1, (self.heads, self.fused.of, -1))
        return values.unflatten(-1, (self.fused.of, -1))


@dataclass(frozen=True)
class LinearMap:
    """A linear map D_in -> D_out of the encoder, which may be a part of a larger one.

    Attributes:
        module: computes it; what a hook of it sees may have more outputs.
        part: which of the module's outputs are the map's.
    """

    module: nn.Module
    part: Part = Part()

    @property
    def in_features(self) -> int:
        """D_in; said by the module, since packed weights (4 bits) have another shape."""
        inner: Any = self.module
        return int(inner.weight.shape[0] if has_columns(inner) else inner.in_features)

    @property
    def out_features(self) -> int:
        """D_out."""
        inner: Any = self.module
        whole = int(inner.weight.shape[1] if has_columns(inner) else inner.out_features)
        return whole if self.part.fused is None else whole // self.part.fused.of

    @property
    def weight(self) -> torch.Tensor:
        """The weights as in `nn.Linear`, [D_out, D_in]; not those that are stored, if fused."""
        inner: Any = self.module
        return self.part.cut(inner.weight if has_columns(inner) else inner.weight.T).T

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias, [D_out]."""
        if self.part.added is not None:
            return self.part.added
        inner: Any = self.module
        return None if inner.bias is None else self.part.cut(inner.bias)

    def named(self, name: str, role: str) -> str:
        """Return the name in the module of something inserted: each of its maps has its own.

        Args:
            name: what is inserted.
            role: which map it is, such as ``query``.
        """
        return name if self.part.fused is None else f"{name}_{role}"


def is_linear(module: nn.Module) -> bool:
    """Whether a module is a linear map: of torch, or of GPT-2 in transformers."""
    return isinstance(module, nn.Linear) or has_columns(module)


def has_columns(module: nn.Module) -> bool:
    """Whether a linear map stores its weights as [D_in, D_out]: GPT-2's does."""
    return type(module).__name__ == "Conv1D"


@dataclass(frozen=True)
class AttentionMaps:
    """The linear maps of one layer's attention.

    Attributes:
        module: computes attention with the maps.
        query: makes queries.
        key: makes keys.
        value: makes values.
        output: reads what all heads give.
    """

    module: nn.Module
    query: LinearMap
    key: LinearMap
    value: LinearMap
    output: LinearMap
