"""Compares an encoder with a forward pass of its family that was written by hand, in float64.

A family's test calls these functions with a tiny shape and a `Reference`. B examples, L tokens,
D width.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Protocol
from unittest.mock import patch

import torch
from torch import nn

from stream.config.backbone import BackboneConfig
from stream.data.batch import TokenBatch
from stream.models.encoder import Encoder, load_encoder
from stream.models.families.catalogue import find_family
from stream.models.modules.bottleneck import Architecture, Bottleneck, insert_adapters
from stream.models.places import LinearMap, first_input
from stream.seeding import torch_generator
from tests.builders import VOCABULARY
from tests.models.reference.functions import End, Weights, gelu, linear, places, same

TOLERANCE = 1e-10
LENGTHS = (13, 4, 7)  # of the examples in a batch


class Reference(Protocol):
    """A family's forward pass: the hidden states [B, L, D] behind the last layer and its norm."""

    def __call__(
        self, weights: Weights, config: Any, batch: TokenBatch, end: End = same, /
    ) -> torch.Tensor: ...


def load(shape: dict[str, Any], pooling: str | None = None) -> Encoder:
    """Return an encoder of random weights; ``pooling`` is the first of its family's if None."""
    if pooling is None:
        pooling = find_family(shape["model_type"], where="shape").pooling[0]
    config = BackboneConfig("tiny", "random", shape=shape, pooling=pooling)
    return load_encoder(config, vocabulary_size=VOCABULARY)


def drawn_encoder(shape: dict[str, Any], pooling: str | None = None) -> Encoder:
    """Return an encoder in float64, every weight of it drawn, that of norms and biases too."""
    encoder = load(shape, pooling).double().eval()
    generator = torch_generator(0, "drawn")
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            drawn = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
            is_scale = "norm" in name.lower() and name.endswith("weight")
            weight.copy_(1 + 0.3 * drawn if is_scale else 0.3 * drawn)
    return encoder


def made_batch(lengths: tuple[int, ...] = LENGTHS, width: int = 0, side: str = "right"):
    """Return a batch whose texts depend on their length alone.

    Args:
        lengths: of the texts.
        width: padded length; the longest text's if it is smaller.
        side: the side of the padding.
    """
    width = max(*lengths, width)
    ids = torch.randint(0, 5, (len(lengths), width), generator=torch_generator(0, "padding"))
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for example, length in enumerate(lengths):
        text = torch.randint(5, VOCABULARY, (length,), generator=torch_generator(length, "text"))
        start = width - length if side == "left" else 0
        ids[example, start : start + length] = text
        mask[example, start : start + length] = 1
        types[example, start + length // 2 : start + length] = 1
    return TokenBatch(ids, mask, types, (), padding=side)


def real(states: torch.Tensor, batch: TokenBatch) -> list[torch.Tensor]:
    """Return the states [length, D] of each text's own tokens."""
    return [row[m == 1] for row, m in zip(states, batch.attention_mask, strict=True)]


def close(found: torch.Tensor, wanted: torch.Tensor, tolerance: float = TOLERANCE) -> None:
    """Raise AssertionError unless two tensors are the same but for rounding."""
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


def weights_of(encoder: Encoder) -> dict[str, torch.Tensor]:
    """Return the weights of the body by name, as they are now."""
    return {name: value.detach().clone() for name, value in encoder.body.state_dict().items()}


def check_states(
    shape: dict[str, Any],
    reference: Reference,
    sides: tuple[str, ...] = ("right", "left"),
    tolerance: float = TOLERANCE,
) -> None:
    """The encoder's hidden states are those of the reference."""
    encoder = drawn_encoder(shape)
    weights, config = weights_of(encoder), encoder.body.config
    for side in sides:
        batch = made_batch(side=side)
        with torch.no_grad():
            found = real(encoder.states(batch)[1], batch)
            wanted = real(reference(weights, config, batch), batch)
        for one, other in zip(found, wanted, strict=True):
            close(one, other, tolerance)


def _adapted(encoder: Encoder) -> dict[tuple[int, str], Bottleneck]:
    """Insert adapters of drawn weights; return them by layer and sub-layer."""
    places = encoder.sublayers()
    found = insert_adapters(encoder, Architecture(encoder.width, 3))
    adapters = {}
    for place, (layer, adapted) in zip(places, found, strict=True):
        assert layer == place.layer
        adapter = adapted.adapter.double()
        for parameter in adapter.parameters():
            name = f"{layer}/{place.position}/{tuple(parameter.shape)}"
            drawn = torch.randn(parameter.shape, generator=torch_generator(0, name))
            parameter.data.copy_(0.5 * drawn)
        adapters[layer, place.position] = adapter
    return adapters


def _gradients(
    states: torch.Tensor, batch: TokenBatch, parameters: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return the gradients of a fixed linear function of the texts' states."""
    coefficients = torch.randn(states.shape, generator=torch_generator(0, "loss")).to(states)
    loss = (states * coefficients * batch.attention_mask[..., None]).sum()
    return list(torch.autograd.grad(loss, parameters))


def check_adapters(
    shape: dict[str, Any], reference: Reference, tolerance: float = TOLERANCE
) -> None:
    """Adapters are where the reference has them: states, and the gradient of every weight."""
    encoder = drawn_encoder(shape)
    weights, config, batch = weights_of(encoder), encoder.body.config, made_batch()
    adapters = _adapted(encoder)
    names = [n for n, _ in Bottleneck(Architecture(encoder.width, 3)).named_parameters()]
    copies = {
        place: {n: adapter.get_parameter(n).detach().clone().requires_grad_() for n in names}
        for place, adapter in adapters.items()
    }
    layers = range(encoder.num_layers)
    assert list(copies) == [(i, p) for i in layers for p in ("attention", "feedforward")]

    def end(layer: int, position: str, f: torch.Tensor) -> torch.Tensor:
        own = copies[layer, position]
        return f + linear(own, "up", gelu(linear(own, "down", f)))

    found, wanted = encoder.states(batch)[1], reference(weights, config, batch, end)
    own = [adapter.get_parameter(name) for adapter in adapters.values() for name in names]
    theirs = [copy[name] for copy in copies.values() for name in names]
    for one, other in zip(real(found, batch), real(wanted, batch), strict=True):
        close(one, other, tolerance)
    pairs = zip(_gradients(found, batch, own), _gradients(wanted, batch, theirs), strict=True)
    for one, other in pairs:
        assert other.abs().max() > 1e-3, "an adapter that the states do not depend on"
        close(one, other, tolerance * 10)


def check_identity(shape: dict[str, Any]) -> None:
    """Adapters whose last map starts at 0 change no bit."""
    encoder, batch = drawn_encoder(shape), made_batch()
    with torch.no_grad():
        before = encoder.states(batch)[1]
        adapters = insert_adapters(encoder, Architecture(encoder.width, 3, zero_up=True))
        for layer, adapted in adapters:
            adapted.adapter.double().initialize(torch_generator(layer, "start"))
        assert torch.equal(encoder.states(batch)[1], before)


def check_padding(
    shape: dict[str, Any],
    poolings: tuple[str, ...] = ("cls", "mean"),
    sides: tuple[str, ...] = ("right", "left"),
    tolerance: float = TOLERANCE,
) -> None:
    """Texts have the same states and vectors alone, with others, and padded at either side.

    The vector of the first token stands at the first place, so padding before it is no use of it.
    """
    for pooling in poolings:
        encoder = drawn_encoder(shape, pooling)
        with torch.no_grad():
            alone = [encoder.states(made_batch((length,))) for length in LENGTHS]
            for side in sides:
                batch = made_batch(width=16, side=side)
                texts, states = encoder.states(batch)
                for i, found in enumerate(real(states, batch)):
                    close(found, alone[i][1][0], tolerance)
                    if side == "right" or pooling in ("mean", "last"):
                        close(texts[i], alone[i][0][0], tolerance)


def _changed(batch: TokenBatch, example: int, token: int) -> TokenBatch:
    """Return the batch with another token at one place."""
    ids = batch.input_ids.clone()
    ids[example, token] = (ids[example, token] + 7) % VOCABULARY
    return replace(batch, input_ids=ids)


def check_masks(shape: dict[str, Any], *, causal: bool = False) -> None:
    """A masked token changes no bit of a real one's; a real one does, where it may be seen."""
    encoder, batch = drawn_encoder(shape), made_batch()

    def seen(batch: TokenBatch) -> list[torch.Tensor]:
        with torch.no_grad():
            return real(encoder.states(batch)[1], batch)

    before = seen(batch)
    for one, other in zip(seen(_changed(batch, 1, LENGTHS[1] + 1)), before, strict=True):
        assert torch.equal(one, other), "a masked token is read"
    after = seen(_changed(batch, 0, 5))
    assert torch.equal(after[1], before[1]), "another text is read"
    moved = (after[0] - before[0]).abs().amax(-1) > 1e-6
    expected = torch.arange(LENGTHS[0]) >= (5 if causal else 0)
    assert moved.tolist() == expected.tolist()


def check_maps(shape: dict[str, Any], reference: Callable[..., Any]) -> None:
    """A layer's maps are its queries, keys and values, also where one module makes all of them.

    Args:
        shape: of the encoder.
        reference: (weights, configuration, layer, what the layer's attention reads) to queries,
            keys and values, [B, L, D] each.
    """
    encoder, batch = drawn_encoder(shape), made_batch()
    weights, config, places = weights_of(encoder), encoder.body.config, encoder.sublayers()
    for index, maps in enumerate(encoder.attention_maps()):
        read: list[torch.Tensor] = []
        reader = places[2 * index].reader
        hook = reader.register_forward_pre_hook(
            lambda _, args, kwargs, read=read: read.append(first_input(args, kwargs)),
            with_kwargs=True,
        )
        with torch.no_grad():
            encoder.states(batch)
            hook.remove()
            wanted = reference(weights, config, index, read[0])
            for found, other in zip((maps.query, maps.key, maps.value), wanted, strict=True):
                output = found.module(read[0])
                close(found.part.of(output), other)
                plain = read[0] @ found.weight.T
                close(plain if found.bias is None else plain + found.bias, other)
                _check_placed(found, output)


def _check_placed(own: LinearMap, output: torch.Tensor) -> None:
    """What is placed among a module's outputs is found there, and the others are as they were."""
    values = torch.arange(output[..., : own.out_features].numel(), dtype=output.dtype)
    values = values.reshape(*output.shape[:-1], -1)
    placed = own.part.placed(output, values)
    close(own.part.of(placed), values)
    close(own.part.placed(placed, own.part.of(output)), output)
    assert (placed != output).sum() == values.numel()


class _Words(nn.Module):
    """A prompt that is the embeddings of words, the same before every text."""

    def __init__(self, vectors: torch.Tensor):
        super().__init__()
        self.vectors = vectors

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        """Return them for every text, [B, P, E]."""
        return self.vectors.expand(len(embedded), -1, -1)


def check_prompt(shape: dict[str, Any], reference: Reference, module: ModuleType) -> None:
    """A prompt is read as words behind the first token, all of them at the first position.

    Args:
        shape: of the encoder.
        reference: its forward pass.
        module: where it finds `places`, by which it counts positions.
    """
    encoder, batch = drawn_encoder(shape), made_batch()
    words = torch.tensor([[7, 11, 13, 17, 19]])
    body: Any = encoder.body
    table = body.get_input_embeddings().weight.detach()
    encoder.insert_prompt(_Words(table[words]))

    def widened(values: torch.Tensor, between: torch.Tensor) -> torch.Tensor:
        between = between.expand(len(values), -1)
        return torch.cat([values[:, :1], between, values[:, 1:]], 1)

    def placed(mask: torch.Tensor, first: int = 0) -> torch.Tensor:
        assert mask.shape[1] == batch.width + words.shape[1]
        return widened(places(batch.attention_mask, first), torch.full_like(words, first))

    wide = TokenBatch(
        widened(batch.input_ids, words),
        widened(batch.attention_mask, torch.ones_like(words)),
        widened(batch.token_type_ids, torch.zeros_like(words)),
        (),
    )
    with torch.no_grad(), patch.object(module, "places", placed):
        states = reference(weights_of(encoder), encoder.body.config, wide)
    wanted = torch.cat([states[:, :1], states[:, 1 + words.shape[1] :]], 1)
    with torch.no_grad():
        found = encoder.states(batch)[1]
    for one, other in zip(real(found, batch), real(wanted, batch), strict=True):
        close(one, other)
