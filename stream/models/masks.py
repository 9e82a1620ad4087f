"""Which tokens a token reads: masks that a CUDA graph can hold.

B texts, L tokens. They are made of the tokens' mask by operations on its device alone; those that
transformers makes may look at a mask's values (and leave it out where it hides nothing, so that
what is computed depends on whether a step is captured), or read a number on the CPU.

Tokens are compared by their places in a text, not by columns: padding may be on either side, and a
soft prompt may stand in any column.
"""

from typing import Any, NamedTuple

import torch

from stream.errors import choose, require
from stream.models.families.family import Family

ALL = "*"
"""What stands for all layers in `Family.windows`."""


class Masks:
    """Makes of the tokens' mask what an encoder's attention takes."""

    def __init__(self, config: Any, family: Family):
        """Read what the configuration says of attention.

        Raises:
            UserError: the family says nothing of a type of layer, or names no setting, or its
                attention is computed in a way that leaves something out.
        """
        kind = getattr(config, "_attn_implementation", None)
        if kind == "sdpa":
            choose(f"attention of {config.model_type}", kind, family.attentions)
        self._adds = kind == "eager" and family.mask == "added"
        # A family that counts distances adds a bias of its own to each layer's scores.
        simple = family.mask == "added" and family.positions.kind != "relative"
        self._takes_logarithms = kind == "sdpa" and simple
        self._causal = family.causal
        self._windows = _windows(config, family) if kind in ("eager", "sdpa") else {}
        self.reads_places = bool(self._windows)
        """Whether a mask depends on the places of tokens."""

    def of(self, mask: torch.Tensor, order: torch.Tensor | None, dtype: torch.dtype) -> Any:
        """Return the mask that transformers' encoder takes: one, or one for each type of layer.

        Args:
            mask: 1 for tokens, 0 for padding, [B, L].
            order: the places of tokens (`places`), [B, L]; read where `reads_places`.
            dtype: of the attention scores.
        """
        once = self._takes_logarithms and captured(mask)
        if not self._windows:
            if once:
                return logarithm(mask[:, None, None], dtype)
            return added(mask[:, None, None], dtype) if self._adds else mask
        assert order is not None, "such masks compare places"
        found = {}
        for name, window in self._windows.items():
            read = readable(mask, order, window, causal=self._causal)
            if self._adds or once:
                read = added(read, dtype) if self._adds else logarithm(read, dtype)
            found[name] = read
        return found.get(ALL, found)


def places(mask: torch.Tensor, between: int = 0, behind: int = 0) -> torch.Tensor:
    """Return the place of every column in its text, from 0, [B, L + between].

    Padding has none of its own: that of a token before it, or -1.

    Args:
        mask: 1 on tokens, [B, L].
        between: vectors that stand in the columns behind the first ``behind`` ones.
        behind: tokens of a text that come before those vectors, in whatever column it begins.
    """
    order = mask.cumsum(1) - 1
    if not between:
        return order
    order = order + between * (order >= behind)
    vectors = torch.arange(behind, behind + between, device=mask.device).expand(len(mask), -1)
    return torch.cat([order[:, :behind], vectors, order[:, behind:]], dim=1)


def added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what a mask adds to the attention scores: 0, or the type's smallest number.

    Args:
        mask: 1 where a token is read, of any shape.
        dtype: of the scores.
    """
    return (1 - mask.to(dtype)) * torch.finfo(dtype).min


def logarithm(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what torch's attention makes of a mask itself, in every layer: 0, or minus infinity.

    Args:
        mask: 1 where a token is read, of any shape.
        dtype: of the queries.
    """
    return mask.to(dtype).log()


def captured(tensor: torch.Tensor) -> bool:
    """Whether what is computed of a tensor now goes into a CUDA graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def readable(
    mask: torch.Tensor, order: torch.Tensor, window: int | None, *, causal: bool
) -> torch.Tensor:
    """Return which tokens each token reads, [B, 1, 1 or L, L].

    Args:
        mask: 1 for tokens, 0 for padding, [B, L].
        order: the places of tokens, [B, L].
        window: how far away a token may be; of a causal encoder, how many tokens are read, the
            reader among them. None if each reads all that it may.
        causal: tokens behind are not read.
    """
    keys, length = mask.bool()[:, None, None], mask.shape[1]
    if not causal and (window is None or length <= window + 1):
        return keys
    # Comparisons alone, for a matrix of distances would be eight times as large as what is made.
    reader, other = order[:, None, :, None], order[:, None, None, :]
    near = other <= (reader if causal or window is None else reader + window)
    if window is not None:
        near &= other >= reader - (window - 1 if causal else window)
    # Padding far from every token would read nothing, and a mean over nothing is no number.
    return keys & near | torch.eye(length, dtype=torch.bool, device=mask.device)


def _windows(config: Any, family: Family) -> dict[str, int | None]:
    """Return how far away a token may be that another reads, for every type of layer.

    Raises:
        UserError: the family says nothing of a type of layer, or names no setting.
    """
    if not family.windows:
        return {ALL: None} if family.causal else {}
    if ALL in family.windows:
        return {ALL: getattr(config, str(family.windows[ALL]))}
    types = sorted(set(config.layer_types))
    unknown = sorted(set(types) - set(family.windows))
    require(
        not unknown,
        f"layer_types of {config.model_type} has {', '.join(unknown)}; its family knows "
        f"{', '.join(family.windows)} (windows)",
    )
    found = {}
    for kind in types:
        name = family.windows[kind]
        far = None if name is None else getattr(config, name, None)
        require(
            name is None or isinstance(far, int),
            f"the family of {config.model_type} takes the window of {kind} from {name!r}, which is "
            f"{far!r} in the configuration; it must be a number",
        )
        found[kind] = far
    return found


class Reading:
    """Which tokens the texts of a pass have, and which of them each token reads."""

    def __init__(self, *, causal: bool) -> None:
        self._causal = causal
        self._tokens: torch.Tensor | None = None
        self._read: _Read | None = None

    def begin(self, tokens: torch.Tensor) -> None:
        """Note the mask of the texts of a pass, [B, L]."""
        self._tokens, self._read = tokens, None

    def readable(self) -> torch.Tensor | None:
        """Return what each token reads, as torch's attention takes it: bool [B, 1, 1 or L, L].

        That is all of its text, in a causal encoder what stands before it; narrower windows of some
        layers are not counted. Padding of causal texts reads itself: a mean over nothing is none.
        None says that all is read.
        """
        assert self._tokens is not None, "a pass begins with `begin`"
        if self._read is None:
            self._read = self._found(self._tokens)
        return self._read.mask

    def _found(self, tokens: torch.Tensor) -> "_Read":
        """Return what `readable` does, from which tokens there are, [B, L]."""
        if self._causal:
            return _Read(readable(tokens, places(tokens), None, causal=True))
        read = tokens.bool()[:, None, None]
        # As in transformers: without a mask attention is faster; a graph cannot look.
        return _Read(None if not captured(read) and bool(read.all()) else read)

    def __deepcopy__(self, memo: object) -> "Reading":
        """Return a new one: a copy of the encoder has passes of its own."""
        return Reading(causal=self._causal)


class _Read(NamedTuple):
    """A mask that was found; None is one too."""

    mask: torch.Tensor | None
