"""What methods train and how they start, against the numbers that their papers give."""

import math

import pytest
import torch

from stream.errors import UserError
from stream.learners._shared.sequential import Sequential
from stream.learners.adapter import Adapter
from stream.learners.adapterfusion import AdapterFusion
from stream.learners.bapna import Bapna
from stream.learners.base import Learner
from stream.learners.dora import Dora
from stream.learners.frozen import Frozen
from stream.learners.ia3 import Ia3
from stream.learners.l2p import L2p
from stream.learners.layernorm import LayerNorm
from stream.learners.lora import Lora
from stream.learners.lwf import Lwf
from stream.learners.olora import OLora
from stream.learners.parallel import Parallel
from stream.learners.pfeiffer import Pfeiffer
from stream.learners.prefix_tuning import PrefixTuning
from stream.learners.progressive import Progressive
from stream.learners.progressive_prompts import ProgressivePrompts
from stream.learners.prompt_tuning import PromptTuning
from stream.learners.shared_adapter import SharedAdapter
from stream.learners.stacked import Stacked
from stream.learners.topk import TopK
from stream.models.modules.bottleneck import reduced
from stream.models.modules.columns import Lateral
from tests.builders import Stream, made_task
from tests.learners.test_isolated import bert_base

HOULSBY = 2_379_264  # two adapters of 64 units in each of 12 layers of BERT-base
LAYERNORMS = 38_400
LAYER = 85_054_464 // 12
FUSION = 12 * (3 * 768 * 768 + 2 * 768)  # query and key with a bias, value without


@pytest.mark.parametrize(
    ("learner", "count"),
    [
        (Frozen(), 0),
        (LayerNorm(), LAYERNORMS),
        (SharedAdapter(), HOULSBY + LAYERNORMS),
        (SharedAdapter(size=8), 313_536 + LAYERNORMS),
        (Sequential(), 109_482_240),
        (TopK(layers=1), LAYER + 768 * 768 + 768),  # the pooler, which the head reads here
        (TopK(layers=5), 5 * LAYER + 768 * 768 + 768),
        (Bapna(size=64), 12 * (2 * 768 * 64 + 768 + 64 + 2 * 768)),
        (Parallel(size=64), HOULSBY // 2),
        (AdapterFusion(), 894_528 + FUSION),
        (Stacked(reduction=2), 12 * (2 * 768 * 384 + 768 + 384)),
        (PromptTuning(length=20), 20 * 768),
        (ProgressivePrompts(length=10), 10 * 768),
        (PrefixTuning(length=20), 12 * 2 * 20 * 768),
        (Ia3(), 12 * (768 + 768 + 3072)),
        (Dora(rank=8), 12 * 2 * (8 * (768 + 768) + 768)),
        (L2p(), 10 * (5 * 768 + 768)),
        (OLora(rank=8), 12 * 2 * 8 * (768 + 768)),
        # A copy of the layers, and from the second one on a lateral map from column 0.
        (Progressive(size=5), 12 * LAYER + 11 * (1 + 768 * 5 + 5 + 5 * 768)),
    ],
)
def test_parameters_that_a_task_trains_on_bert_base(learner: Learner, count: int) -> None:
    encoder = bert_base("pooler")
    with torch.device("meta"):
        learner.model = type("Model", (), {"encoder": encoder})()
        learner.active = None
        learner.seed = 0
        learner.setup(encoder, ["a"])
    trained = [p for name, p in encoder.named_parameters() if learner.trains(name)]
    assert sum(p.numel() for p in trained) == count


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (Adapter, "init_std", 1e-2),  # Houlsby et al. 2019, section 3.6
        (L2p, "pull", 0.5),  # Wang et al. 2022, section 5.2
        (Lwf, "temperature", 2.0),  # Li & Hoiem 2016, section 3
        (Parallel, "scale", 4.0),  # He et al. 2022, section 4.6
        (PromptTuning, "length", 20),  # Lester et al. 2021, section 3.2: more gains little
        (Pfeiffer, "reduction", 16),  # Pfeiffer et al. 2021, section 4
    ],
)
def test_defaults_are_those_of_the_paper(kind: type[Learner], field: str, value: float) -> None:
    assert getattr(kind(), field) == value


@pytest.mark.parametrize(
    ("learner", "std", "zero"),
    [
        (Adapter(), 1e-2, ""),
        (Bapna(), 1e-2, ""),
        (Pfeiffer(reduction=1), 0.02, ""),
        (AdapterFusion(reduction=1), 0.02, ""),
        (Parallel(), 0.02, ".up."),
    ],
)
def test_first_weights_have_the_deviation_that_it_says(
    learner: Learner, std: float, zero: str
) -> None:
    """Normal, cut at two deviations, whose own deviation is 0.8796; or 0, where it says so."""
    run = Stream(learner, [made_task("a")])
    learner.start(run.tasks[0])
    places = (".down.weight", ".up.weight")
    maps = {n: p for n, p in run.model.encoder.named_parameters() if n.endswith(places)}
    assert maps
    drawn = torch.cat([p.flatten() for n, p in maps.items() if not zero or zero not in n])
    assert drawn.std().item() == pytest.approx(0.8796 * std, rel=0.1)
    assert drawn.abs().max() <= 2 * std
    assert all(not p.any() for n, p in maps.items() if zero and zero in n)


def test_lora_starts_as_a_linear_map_of_torch_does() -> None:
    """Kaiming with a = sqrt(5) is uniform within 1 / sqrt(D_in); B is 0."""
    run = Stream(Lora(rank=8), [made_task("a")])
    run.learner.start(run.tasks[0])
    named = dict(run.model.encoder.named_parameters())
    down = torch.cat([p.flatten() for n, p in named.items() if n.endswith("lora.down.weight")])
    assert down.abs().max() <= 1 / math.sqrt(16)
    assert down.std().item() == pytest.approx(1 / math.sqrt(16) / math.sqrt(3), rel=0.1)
    assert not any(p.any() for n, p in named.items() if n.endswith("lora.up.weight"))


@pytest.mark.parametrize(("width", "reduction", "units"), [(768, 16, 48), (16, 16, 1)])
def test_a_reduction_is_of_the_width(width: int, reduction: int, units: int) -> None:
    assert reduced(width, reduction, 0.02).size == units


def test_a_lateral_starts_with_every_column_alike() -> None:
    lateral = Lateral(6, 3, 4)
    lateral.initialize(torch.Generator().manual_seed(0))
    assert torch.equal(lateral.scales, torch.ones(4, 1))


@pytest.mark.parametrize(
    "make",
    [Adapter, OLora, SharedAdapter, PromptTuning, ProgressivePrompts, PrefixTuning, Dora, L2p],
)
def test_first_values_depend_on_the_run_s_seed(make: type[Learner]) -> None:
    """Of modules by task, of those that each task draws anew, and of those that all share."""
    found = []
    for seed in (0, 0, 1):
        learner = make()
        run = Stream(learner, [made_task("a")], seed=seed)
        learner.start(run.tasks[0])
        named = run.model.encoder.named_parameters()
        inserted = [p.detach().clone() for n, p in named if n not in run.model.encoder.pretrained]
        found.append(torch.cat([p.flatten() for p in inserted]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_a_shared_adapter_in_no_adapter_is_refused() -> None:
    with pytest.raises(UserError, match="learner=finetune"):
        SharedAdapter(part="encoder")
