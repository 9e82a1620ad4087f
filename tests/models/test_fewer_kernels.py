"""What is put together for a GPU computes what stood apart; on a CPU, in float32."""

import copy
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from stream.data.batch import Batch
from stream.data.batching import collate
from stream.distributed.gradients import SharedGradients
from stream.learners.adapter import Adapter
from stream.learners.base import Learner
from stream.learners.finetune import Finetune
from stream.learners.lora import Lora
from stream.models import gathered_gradients, masks, precision
from stream.models.bf16 import Bf16Encoder, inserted_modules
from stream.models.encoder import Encoder
from stream.models.gathered_gradients import GatheredGradients
from stream.models.joined_maps import JoinedMaps, join_attention_maps, side_by_side
from stream.models.task_model import TaskModel
from tests.builders import made_task, tiny_encoder
from tests.contract.matrix import ALIKE, shapes
from tests.models.tiny_families import family_encoder, without_dropout


class Operations(TorchDispatchMode):
    """Counts what torch is asked to compute."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.count[func.overloadpacket.__name__] += 1
        return func(*args, **kwargs or {})


def adapted(encoder: Encoder, learner: Learner | None = None) -> Encoder:
    """Insert a method's modules, with weights that change something; train all parameters."""
    learner = learner or Adapter(size=4, init_std=0.1)
    learner.setup(encoder, ["a"])
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_()
            if name not in encoder.pretrained:
                parameter.normal_(std=0.1, generator=generator)
    return without_dropout(encoder).train()


def texts(rows: int = 4) -> Batch:
    """Return texts of different lengths, with padding."""
    task = made_task("a", 2)
    batch = collate([(task, task.split("train"), np.arange(rows))], 0)
    assert (batch.attention_mask == 0).any()
    return batch


def gradients(
    encoder: Encoder, batch: Batch
) -> tuple[torch.Tensor, dict[str, torch.Tensor | None]]:
    """Go forward and back twice, as two blocks of a step do; return the vectors and gradients."""
    vectors = encoder(batch)
    (vectors.square().sum() + encoder(batch.only(slice(0, 1)))[:2].sum()).backward()
    return vectors.detach(), {name: p.grad for name, p in encoder.named_parameters()}


@pytest.mark.parametrize("shape", [shape for shape in shapes() if shape not in ALIKE])
def test_every_family_computes_the_same_together(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = texts()
    apart = adapted(family_encoder(shape))
    together = copy.deepcopy(apart)
    expected, exact = gradients(apart, batch)
    join_attention_maps(together)
    gathered = GatheredGradients(inserted_modules(together))
    monkeypatch.setattr(masks, "captured", lambda tensor: True)
    found, _ = gradients(together, batch)
    gathered.make()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for name, parameter in together.named_parameters():
        if exact[name] is None:
            assert parameter.grad is None or not parameter.grad.any(), name
        else:
            torch.testing.assert_close(parameter.grad, exact[name], rtol=1e-3, atol=1e-5)


def bf16_step(learner: Learner, *, together: bool) -> tuple[Encoder, Counter[str]]:
    """Go forward and back through a bf16 copy; return the original and what was computed."""
    encoder = adapted(tiny_encoder(), learner)
    half, batch = Bf16Encoder(encoder, together=together), texts()
    half.read_all()
    with Operations() as operations:
        half.read_trained()
        half.encoder(batch).square().sum().backward()
        half.give_gradients()
    return encoder, operations.count


@pytest.mark.parametrize("make", [Adapter, Lora, Finetune])
def test_a_bf16_copy_gives_the_same_gradients_in_fewer_operations(
    make: Callable[[], Learner],
) -> None:
    apart, before = bf16_step(make(), together=False)
    together, after = bf16_step(make(), together=True)
    for (name, expected), (_, found) in zip(
        apart.named_parameters(), together.named_parameters(), strict=True
    ):
        if expected.grad is not None:
            assert found.grad is not None, name
            assert found.grad.dtype == torch.float32
            torch.testing.assert_close(found.grad, expected.grad, rtol=0.1, atol=0.02, msg=name)
    layers = len(apart.layers())
    assert before["addmm"] - after["addmm"] == 2 * layers  # query, key and value forward
    adapters = 0 if make is Finetune else 2 * layers  # two maps each
    back = 2 * layers + 2 * layers + 2 * adapters  # to the input, to weights; of inserted maps
    assert before["mm"] - after["mm"] == back
    assert after["bmm"] - before["bmm"] == (2 if adapters else 0)


def test_maps_that_are_large_or_few_make_their_own_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathered_gradients, "MOST_BYTES", 0)
    _, large = bf16_step(Adapter(), together=True)
    monkeypatch.undo()
    _, few = bf16_step(Adapter(places="attention"), together=True)
    assert large["stack"] == few["stack"] == 0


def test_what_a_failed_step_noted_is_not_added_to_the_next_one() -> None:
    encoder, batch = adapted(tiny_encoder()), texts()
    half = Bf16Encoder(encoder, together=True)
    half.read_all()
    half.encoder(batch).square().sum().backward()  # and no gradients are taken
    half.read_trained()
    half.encoder(batch).square().sum().backward()
    half.give_gradients()
    expected, _ = bf16_step(Adapter(size=4, init_std=0.1), together=True)
    for (_, p), (name, own) in zip(
        expected.named_parameters(), encoder.named_parameters(), strict=True
    ):
        torch.testing.assert_close(own.grad, p.grad, msg=name)


class Multiplying(SharedGradients):
    """Multiplies gradients, in the place of what averages them over ranks."""

    def __init__(self, times: float) -> None:
        super().__init__(1)
        self.active, self.times = True, times

    def finish(self, parameters: Iterable[nn.Parameter]) -> None:
        for parameter in {id(p): p for p in parameters}.values():
            if parameter.grad is not None:
                parameter.grad *= self.times


def test_what_ranks_share_has_the_gradients_that_were_put_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "Bf16Encoder", partial(Bf16Encoder, together=True))
    model, batch = TaskModel(adapted(tiny_encoder()), 0, precision="bf16"), texts()

    def shared(times: float) -> dict[str, torch.Tensor | None]:
        model.gradients = Multiplying(times)
        model.zero_grad(set_to_none=True)
        model.sync_bf16_copy()
        with model.computing():
            model.states(batch).tokens.square().sum().backward()
        return {name: p.grad for name, p in model.encoder.named_parameters()}

    once, fourfold = shared(1.0), shared(4.0)  # exact in bf16
    learned = {name for name, gradient in once.items() if gradient is not None}
    assert learned >= once.keys() - model.encoder.pretrained
    for name in learned:
        torch.testing.assert_close(fourfold[name], 4 * once[name], rtol=0, atol=0, msg=name)


def test_joined_maps_that_read_different_tensors_compute_each_its_own() -> None:
    maps = [torch.nn.Linear(3, width) for width in (4, 2)]
    alone = copy.deepcopy(maps)
    JoinedMaps(maps)
    first, second = torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    for place, read in ((0, first), (1, second), (1, first), (0, second), (1, second)):
        torch.testing.assert_close(maps[place](read), alone[place](read))


def test_parts_that_stand_side_by_side_are_not_copied() -> None:
    whole = torch.randn(2, 3, 9)
    beside = side_by_side(whole.split([4, 3, 2], dim=-1))
    assert beside.data_ptr() == whole.data_ptr()
    assert torch.equal(beside, whole)
    a, b, c = whole.split([3, 3, 3], dim=-1)
    other = whole.as_strided((2, 3, 3), (9, 18, 1), 3)
    for apart in (
        [a, other, c],
        [b, a, c],
        [a, b.clone(), c],
        [a, c, b],
        [a[:1], b[1:], c[:1]],
        [b, c],
    ):
        assert torch.equal(side_by_side(apart), torch.cat(apart, dim=-1))
    assert torch.equal(side_by_side([a.clone(), b.clone()]), torch.cat([a, b], dim=-1))
