"""Whether a model has what the description of its family says: modules, maps, positions."""

import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

from stream.errors import UserError, require
from stream.models.distances import READ as DISTANCES
from stream.models.families.family import Family, FusedMap

NEAR = 8  # so many children of a module are named in a message


def check_paths(body: nn.Module, family: Family) -> None:
    """Check that an encoder can be changed and called as its family says.

    Args:
        body: transformers' encoder.
        family: its description.

    Raises:
        UserError: the model has no module of that path, no such part of a map, or cannot be told
            positions or distances.
    """
    layers = layers_of(body, family)
    config: Any = body.config
    uses = int(config.num_hidden_layers)
    require(
        0 < len(layers) <= uses and uses % len(layers) == 0,
        f"{_said(body, family)} layers: {family.layers}, which are {len(layers)} modules for "
        f"{uses} layers in its configuration",
    )
    for layer in layers:
        for field, path in _paths(family):
            module = _found(layer, path, field, body, family)
            if field in ("query", "key", "value", "output", "inner"):
                require(
                    isinstance(getattr(module, "weight", None), nn.Parameter),
                    f"{_said(body, family)} {field}: {path}, but {type(module).__name__} has no "
                    "weight; it must be a linear map",
                )
    require(
        family.norms == "after" or family.final_norm is not None,
        f"{_said(body, family)} norms: before; final_norm must be the path of the norm behind the "
        "last layer",
    )
    if family.final_norm is not None:
        _found(body, family.final_norm, "final_norm", body, family)
    _check_parts(layers[0], body, family)
    _check_positions(body, family)


def layers_of(body: nn.Module, family: Family) -> list[nn.Module]:
    """Return the Transformer layers of an encoder; one that is used several times is there once.

    Raises:
        UserError: they are not where the family says.
    """
    found = [body]
    for index, path in enumerate(family.layers.split("*")):
        if index:  # all members of what was found
            found = [child for module in found for child in module.children()]
        if path.strip("."):
            found = [_found(module, path.strip("."), "layers", body, family) for module in found]
    return found if "*" in family.layers else [*found[0].children()]


def _paths(family: Family) -> Iterator[tuple[str, str]]:
    """Yield the paths inside of a layer, each with its field."""
    for position in ("attention", "feedforward"):
        for part in ("reader", "end", "norm"):
            yield f"{position}.{part}", getattr(getattr(family, position), part)
    for field in ("query", "key", "value", "output", "inner"):
        path: str | FusedMap = getattr(family, field)
        yield field, path if isinstance(path, str) else path.map


def _found(inside: nn.Module, path: str, field: str, body: nn.Module, family: Family) -> nn.Module:
    """Return the module at a path.

    Raises:
        UserError: it is not there.
    """
    module, passed = inside, list[str]()
    for name in path.split("."):
        children = dict(module.named_children())
        if name not in children:
            at = ".".join([type(inside).__name__, *passed])
            names = [*children][:NEAR] + ["..."] * (len(children) > NEAR)
            raise UserError(
                f"{_said(body, family)} {field}: {path}, but {at} has no {name!r}; it has "
                f"{', '.join(names) or 'no modules'}"
            )
        module = children[name]
        passed.append(name)
    return module


def _check_parts(layer: nn.Module, body: nn.Module, family: Family) -> None:
    """Raise UserError unless fused maps can be divided as the family says."""
    for field in ("query", "key", "value"):
        path = getattr(family, field)
        if isinstance(path, FusedMap):
            module: Any = layer.get_submodule(path.map)
            outputs = module.weight.shape[0 if isinstance(module, nn.Linear) else 1]
            require(
                0 <= path.part < path.of and outputs % path.of == 0,
                f"{_said(body, family)} {field}: part {path.part} of {path.of} of {path.map}, "
                f"which has {outputs} outputs",
            )
            names = [name for name, _ in layer.named_parameters()]
            require(
                path.bias is None or path.bias in names,
                f"{_said(body, family)} {field}: bias {path.bias}, but there is no such parameter",
            )


def _check_positions(body: nn.Module, family: Family) -> None:
    """Raise UserError if the model is to be given positions or distances and takes none."""
    known = inspect.signature(body.forward).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values())
    require(
        family.positions.kind == "relative" or takes_any or "position_ids" in known,
        f"{_said(body, family)} positions.kind: {family.positions.kind}, but its forward takes no "
        "position_ids; relative leaves positions to the model",
    )
    path = family.positions.distances
    if path is not None:
        module: Any = _found(body, path, "positions.distances", body, family)
        lacks = [name for name in DISTANCES if not hasattr(module, name)]
        require(
            not lacks,
            f"{_said(body, family)} positions.distances: {path}, but {type(module).__name__} has "
            f"no {', '.join(lacks)}",
        )


def _said(body: nn.Module, family: Family) -> str:
    """Return how messages begin."""
    return f"{type(body).__name__}: the family of {family.model_types[0]!r} says"
