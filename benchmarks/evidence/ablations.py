"""The methods of the paper's ablations: Houlsby et al. 2019, figures 4, 6 and 7, table 2.

Each ablation is what is varied, with a method for every value. Values are written as settings are.
"""

from collections.abc import Mapping

from benchmarks.evidence.methods import Method

TASKS = ("mnli_matched", "cola", "sst2", "newsgroups20")
"""What they are run on: the paper's figures have the first two, its table 2 the last."""
Points = Mapping[str, Method]
"""The method of each value."""

CHOSEN_RATE = "1e-3"
"""The rate of adapters that the search of the comparison chose."""
CHOSEN_STD = "1e-2"
"""The standard deviation of the first weights of every other run."""
WHOLE = "independent"


def _fixed(learner: str, name: str, *settings: str, head_of: str = "") -> Method:
    """Return a method whose settings are all given."""
    return Method(name, (f"learner={learner}", *settings), isolated=True, head_of=head_of)


def _chosen(name: str, learner: str, rates: str, *settings: str, head_of: str = "") -> Method:
    """Return a method that chooses among rates for each task, on its validation rows."""
    choice = f"select={{{rates}}}"
    given = (f"learner={learner}", *settings, choice)
    return Method(f"{name}_chosen", given, isolated=True, choice=choice, head_of=head_of)


AS_CHOSEN = _fixed("adapter", "adapter_default", f"learner.lr={CHOSEN_RATE}")
"""Adapters as the comparison has them; its layers are taken out too (figure 6)."""


def _with_std(std: str) -> Method:
    if std == CHOSEN_STD:
        return AS_CHOSEN
    settings = f"learner.lr={CHOSEN_RATE}", f"learner.init_std={std}"
    return _fixed("adapter", f"adapter_std_{std}", *settings)


def _with_rate(learner: str, rate: str) -> Method:
    if (learner, rate) == ("adapter", CHOSEN_RATE):
        return AS_CHOSEN
    head_of = WHOLE if learner == WHOLE else ""
    return _fixed(learner, f"{learner}_lr_{rate}", f"learner.lr={rate}", head_of=head_of)


STDS: Points = {
    std: _with_std(std) for std in ("1e-7", "1e-6", "1e-5", "1e-4", "1e-3", CHOSEN_STD, "1e-1", "1")
}
"""Figure 6, right: standard deviations of the first weights."""
RATES = ("1e-5", "3e-5", "1e-4", "3e-4", "1e-3", "3e-3", "1e-2")
BY_RATE: Mapping[str, Points] = {
    learner: {rate: _with_rate(learner, rate) for rate in RATES} for learner in ("adapter", WHOLE)
}
"""Figure 7: learning rates, by learner."""

_LOWER, _LOW, _MIDDLE, _HIGH = (
    *("lr: [3e-5, 1e-4, 3e-4]", "lr: [1e-4, 3e-4, 1e-3]"),
    *("lr: [3e-4, 1e-3, 3e-3]", "lr: [1e-3, 3e-3, 1e-2]"),
)
_BY_SIZE = {"2": _HIGH, "8": _HIGH, "64": _MIDDLE, "512": _LOW}
SIZES: Points = {
    size: _chosen(f"adapter_{size}", "adapter", rates, f"learner.size={size}")
    for size, rates in _BY_SIZE.items()
}
"""Figure 4: sizes of adapters."""
_BY_DEPTH = {"1": _MIDDLE, "2": _MIDDLE, "3": _LOW, "4": _LOW, "6": _LOWER}
TOP: Points = {
    k: _chosen(f"topk_{k}", "topk", f"{rates}, head_lr: [3e-4, 3e-3]", f"learner.layers={k}")
    for k, rates in _BY_DEPTH.items()
}
"""Figure 4: how many top layers. The search of `topk` left the rate of the heads at an end."""
NORMS = _chosen("layernorm", "layernorm", _HIGH)
FULL = _chosen(WHOLE, WHOLE, _LOWER, head_of=WHOLE)

ONE_SETTING = tuple(
    dict.fromkeys((*STDS.values(), *BY_RATE["adapter"].values(), *BY_RATE[WHOLE].values()))
)
PER_TASK = (*SIZES.values(), *TOP.values(), NORMS, FULL)
ABLATIONS = (*ONE_SETTING, *PER_TASK)
