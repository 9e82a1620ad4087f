"""The Transformer layers of an encoder: places and maps in them, as its family describes them."""

from typing import Any

from torch import nn

from stream.errors import UserError
from stream.models.families.family import Family, FusedMap
from stream.models.families.paths import layers_of
from stream.models.places import POSITIONS, AttentionMaps, LinearMap, Part, SubLayer, Uses


class Layers:
    """The layers of transformers' encoder.

    Attributes:
        uses: counts the uses of layers that are used several times; None where each is used once.
    """

    def __init__(self, body: nn.Module, family: Family):
        """Take transformers' encoder and its family, which `check_paths` has compared."""
        self._body, self._family = body, family
        self.uses = self._count_uses()

    def _count_uses(self) -> Uses | None:
        """Count the uses of layers that are used several times; None where each is used once."""
        layers = self.modules()
        if len(layers) == self.num_used:
            return None
        uses = Uses()
        self._body.register_forward_pre_hook(uses.begin_pass)
        for layer in layers:
            layer.register_forward_pre_hook(uses.begin_use)
        return uses

    def modules(self) -> list[nn.Module]:
        """Return the Transformer layers; one that is used several times is there once."""
        return layers_of(self._body, self._family)

    @property
    def num_used(self) -> int:
        """How many layers a text goes through; a layer that is used twice counts twice."""
        config: Any = self._body.config
        return int(config.num_hidden_layers)

    def _in_use(self) -> list[nn.Module]:
        """Return the layers in the order of their use."""
        layers = self.modules()
        return [layers[use * len(layers) // self.num_used] for use in range(self.num_used)]

    def sublayers(self) -> list[SubLayer]:
        """Return both adapter places of every layer, attention before feed-forward.

        A layer that is used several times has places for every use.
        """
        layers, family = self._in_use(), self._family
        paths = {"attention": family.attention, "feedforward": family.feedforward}
        places = [(use, position) for use in range(len(layers)) for position in POSITIONS]
        norms = [self.inside(layers[use], paths[position].norm) for use, position in places]
        before = family.norms == "before"
        if before:
            assert family.final_norm is not None, "where norms come before, one comes at the end"
            norms.append(self.inside(self._body, family.final_norm))
        found = []
        for index, (use, position) in enumerate(places):
            layer, path = layers[use], paths[position]
            reader = self.inside(layer, path.reader)
            found.append(
                SubLayer(
                    use,
                    position,
                    self.inside(layer, path.end),
                    reader,
                    norms[index] if before else reader,
                    norms[index + 1] if before else norms[index],
                    layer,
                    self.uses,
                )
            )
        return found

    def attention_maps(self) -> list[AttentionMaps]:
        """Return the linear maps of every layer's attention, from the bottom up."""
        family = self._family
        paths = (family.query, family.key, family.value, family.output)
        key = family.key if isinstance(family.key, str) else family.key.map
        around = key.rpartition(".")[0]
        return [
            AttentionMaps(self.inside(layer, around), *(self._map(layer, p) for p in paths))
            for layer in self.modules()
        ]

    def inner_maps(self) -> list[LinearMap]:
        """Return the maps that read the inner activations of every feed-forward network."""
        return [self._map(layer, self._family.inner) for layer in self.modules()]

    def _map(self, layer: nn.Module, path: str | FusedMap) -> LinearMap:
        """Return a map of a layer."""
        if isinstance(path, str):
            return LinearMap(self.inside(layer, path))
        config: Any = self._body.config
        bias = None if path.bias is None else layer.get_parameter(path.bias)
        part = Part(path, int(config.num_attention_heads), bias)
        return LinearMap(self.inside(layer, path.map), part)

    def inside(self, module: nn.Module, path: str) -> nn.Module:
        """Return what the family says is inside of a module.

        Raises:
            UserError: it is not there.
        """
        try:
            return module.get_submodule(path)
        except AttributeError as error:
            raise UserError(
                f"{type(self._body).__name__} has no {path} in {type(module).__name__}, where the "
                f"family of {self._family.model_types[0]} says that it is"
            ) from error
