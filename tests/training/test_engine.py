"""The captured step against the eager one; on a GPU. What can be told without one is told here."""

import gc
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

import stream
from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.batching import training_rows
from stream.data.shared_head import with_shared_head
from stream.data.task import SHARED_HEAD, Task
from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.learners.base import Learner
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.gem import Gem
from stream.learners.independent import Independent
from stream.learners.joint import Joint
from stream.learners.lwf import Lwf
from stream.learners.majority import Majority
from stream.learners.replay import Replay
from stream.learners.workload import Epoch
from stream.models.encoder import Encoder
from stream.models.heads import Head
from stream.models.task_model import TaskModel
from stream.training.captured import Captured
from stream.training.engine import Eager, pick_engine
from stream.training.loop import fit
from stream.training.snapshot import FitSnapshot, capture, load_tensors
from tests.builders import CPU, made_task, tiny_encoder

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def cuda(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that runs on a GPU alone: ``pytest -m gpu``."""
    return pytest.mark.gpu(needs_cuda(test))


places_on_the_gpu = pytest.mark.skipif(
    "device" not in inspect.getsource(MPNetEncoder.compute_position_bias).split("arange")[1],
    reason="this transformers makes MPNet's positions on the CPU, which no graph can hold",
)
GPU = torch.device("cuda")
TRAINING = TrainingConfig(epochs=6, min_steps=0, batch_size=8)


def learned(
    make: Callable[[], Learner],
    tasks: list[Task],
    engine: str,
    *,
    half: bool = False,
    mask: str = "none",
    encoder: Callable[[], Encoder] = tiny_encoder,
    stop: tuple[int, int] | None = None,
    resumed: FitSnapshot | None = None,
) -> tuple[Learner, list[list[float]]]:
    """Learn tasks on the GPU; return the learner and every loss.

    In ``half`` without dropout, whose masks differ where batches are padded.
    """
    learner = make()
    body = encoder().to(GPU)
    model = TaskModel(body, 0, mask=mask)
    if half:
        model = TaskModel(body, 0, dropout=0.0, precision="bf16", mask=mask)
        for module in body.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    learner.attach(model, tasks=tasks, seed=0, pad_id=0)
    chosen = pick_engine(engine, learner, GPU, TRAINING.batch_size, counting=False)
    assert isinstance(chosen, Captured if engine == "captured" else Eager)
    losses = []
    for number, task in enumerate(tasks):
        begun = resumed if number == len(tasks) - 1 else None

        def on_step(step, number=number) -> None:
            if stop == (number, step.number):
                raise StopError(step.save())

        losses.append(fit(learner, task, TRAINING, on_step, engine=chosen, resumed=begun).losses)
    return learner, losses


class StopError(Exception):
    def __init__(self, state: FitSnapshot):
        super().__init__()
        self.state = state


# Equal numbers of outputs share a head while they learn; 29 rows leave a smaller batch.
def tasks() -> list[Task]:
    return [made_task("a", 2, 29), made_task("b", 5, 29), made_task("c", None), made_task("d", 2)]


@cuda
@pytest.mark.parametrize("make", [Adapter, Finetune, Joint, Ewc, Lwf])
def test_captured_steps_learn_what_eager_ones_do(make: Callable[[], Learner]) -> None:
    eager, expected = learned(make, tasks(), "eager")
    captured, found = learned(make, tasks(), "captured")
    for one, other in zip(found, expected, strict=True):
        assert len(one) == len(other)
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)
    for task in tasks():
        state = captured.served_state(task.name)
        for name, tensor in eager.served_state(task.name).items():
            torch.testing.assert_close(state[name], tensor, rtol=2e-2, atol=2e-3)


@cuda
def test_a_capture_waits_for_the_step_before() -> None:
    """It resets where dropout masks start, also for a step of another width that still runs."""

    class Slow(Adapter):
        cuda_graph_safe: ClassVar[bool] = True

        def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
            for number, batch in enumerate(super().training_batches(task, epoch)):
                if number == 2:  # so that this one runs when the next one is captured
                    torch.cuda.synchronize()
                yield batch

        def loss(self, batch: Batch) -> torch.Tensor:
            torch.cuda._sleep(30_000_000)  # cycles
            return super().loss(batch)

    chosen = [made_task("a", rows=48), made_task("h", rows=48)]
    rows = training_rows(chosen[1], TRAINING.batch_size, 0, 0)
    assert [chosen[1].split("train").lengths[r].max() > 8 for r in rows[:4]] == [0, 0, 0, 1]
    _, expected = learned(Adapter, chosen, "eager")
    _, found = learned(Slow, chosen, "captured")
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)


@cuda
@pytest.mark.parametrize("make", [Adapter, Finetune, Joint, Ewc, Lwf, Replay])
def test_in_bf16_they_learn_the_same_but_for_rounding(make: Callable[[], Learner]) -> None:
    """Whole batches, those filled up at the end of an epoch, other tasks' and stored examples."""
    _, expected = learned(make, tasks(), "eager", half=True)
    _, found = learned(make, tasks(), "captured", half=True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=0.05, atol=0.02)


@cuda
@pytest.mark.parametrize("make", [Adapter, Finetune, Independent, Replay])
def test_what_memory_held_before_changes_nothing(make: Callable[[], Learner]) -> None:
    """Memory that other programs gave back is not zero."""
    _, expected = learned(make, tasks(), "captured", half=True)
    held = [torch.full((2**28,), torch.nan, device=GPU) for _ in range(8)]  # 1 GiB each
    del held
    torch.cuda.empty_cache()
    _, found = learned(make, tasks(), "captured", half=True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-2, atol=1e-2)


@cuda
@pytest.mark.parametrize("room", [2, 8, 32])
def test_without_memory_a_step_learns_the_same_or_says_so(room: int) -> None:
    """With room for so many MiB more than the weights take, steps are captured or not."""
    _, expected = learned(Finetune, tasks(), "eager", half=True)
    gc.collect()
    torch.cuda.empty_cache()
    whole = torch.cuda.get_device_properties(GPU).total_memory
    torch.cuda.set_per_process_memory_fraction(
        (torch.cuda.memory_reserved() + room * 2**20) / whole
    )
    try:
        _, found = learned(Finetune, tasks(), "captured", half=True)
    except torch.OutOfMemoryError:
        return
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=0.05, atol=0.02)


def chosen(folder: Path, restarts: int) -> stream.Results:
    """A run on the GPU that chooses among several starts for each of two tasks."""
    return stream.run_stream(
        learner="adapter",
        task=["cola", "rte"],
        backbone="tiny",
        tracking="none",
        folder=folder,
        quiet=True,
        overrides=[f"select.restarts={restarts}", "data.train=64", "figures=false"],
    )


@cuda
def test_without_room_more_candidates_take_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has graphs of its own, and memory for them."""
    monkeypatch.setattr("stream.run.fitting.keeps_graphs", lambda engine: False)

    def peak(restarts: int) -> int:
        torch.cuda.reset_peak_memory_stats()
        chosen(tmp_path / str(restarts), restarts)
        return torch.cuda.max_memory_reserved()

    few = peak(2)
    assert peak(10) < 1.5 * few


@cuda
def test_a_graph_among_garbage_ends_no_capture() -> None:
    """Python collects when it has made enough objects, in the midst of a capture too."""
    old, often = torch.cuda.CUDAGraph(), gc.get_threshold()
    with torch.cuda.graph(old):
        torch.ones(8, device=GPU).sum()
    ring = [old]
    ring.append(ring)  # type: ignore[arg-type] - a cycle, which only a collection finds
    captures = []

    def collect_now(*args: object) -> None:
        if torch.cuda.is_current_stream_capturing():
            captures.append(gc.isenabled())
            gc.set_threshold(1, 1, 1)
            [[number] for number in range(5000)].clear()

    def encoder() -> Encoder:
        encoder = tiny_encoder()
        encoder.body.register_forward_hook(collect_now)
        return encoder

    del old, ring
    try:
        learned(Finetune, tasks()[:1], "captured", encoder=encoder)
    finally:
        gc.set_threshold(*often)
    assert captures
    assert not any(captures)
    assert gc.isenabled()


@cuda
def test_what_is_taken_back_was_copied_before_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late a GPU that others use too comes to copy it."""
    _, expected = learned(Finetune, tasks()[:2], "captured")
    plain = Captured._learned

    def late(engine: Captured) -> list[torch.Tensor]:
        torch.cuda._sleep(200_000_000)  # cycles: 0.1 s
        return plain(engine)

    monkeypatch.setattr(Captured, "_learned", late)
    _, found = learned(Finetune, tasks()[:2], "captured")
    assert found == expected


@cuda
def test_graphs_of_candidates_learn_the_next_task_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = chosen(tmp_path / "kept", 3).record
    monkeypatch.setattr("stream.run.fitting.keeps_graphs", lambda engine: False)
    anew = chosen(tmp_path / "anew", 3).record
    assert kept.losses == anew.losses
    scores = [[c.score for of in r.selection.values() for c in of.candidates] for r in (kept, anew)]
    assert scores[0] == scores[1]


@cuda
@pytest.mark.parametrize("learner", ["finetune", "replay", "ewc", "lwf"])
@pytest.mark.parametrize("engine", ["captured", "eager"])
def test_a_whole_encoder_repeats_bit_for_bit(engine: str, learner: str, tmp_path: Path) -> None:
    """In wide batches, where gradients of embeddings are summed over thousands of tokens."""

    def run(name: str) -> stream.Results:
        return stream.run_stream(
            learner=learner,
            task=["qnli", "rte"],
            backbone="tiny",
            tracking="none",
            folder=tmp_path / name,
            quiet=True,
            overrides=[
                *("data.train=512", "training.batch_size=128", f"training.engine={engine}"),
                "figures=false",
            ],
        )

    one, other = run("one"), run("other")
    assert one.record.losses == other.record.losses
    for first, second in zip(one.record.cells[-1], other.record.cells[-1], strict=True):
        assert first is not None
        assert second is not None
        assert first.digest == second.digest


@cuda
def test_graphs_that_are_dropped_give_their_memory_back() -> None:
    """Replay has new graphs for every task."""
    learned(Replay, tasks()[:1], "captured", half=True)
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    learner, _ = learned(
        Replay, [*tasks(), *(made_task(n, 2) for n in "efgh")], "captured", half=True
    )
    del learner
    gc.collect()
    assert torch.cuda.memory_reserved() - before < 2**28


@cuda
def test_a_step_that_no_graph_can_hold_is_executed_eagerly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Copying(Finetune):
        cuda_graph_safe: ClassVar[bool] = True

        def loss(self, batch: Batch) -> torch.Tensor:
            return super().loss(batch) * torch.ones(()).to(GPU)

    _, expected = learned(Finetune, tasks(), "eager")
    _, found = learned(Copying, tasks(), "captured")
    assert len([r for r in caplog.records if "executed eagerly from here" in r.message]) == 1
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)


@cuda
@pytest.mark.parametrize(
    "model_type", ["roberta", "electra", pytest.param("mpnet", marks=places_on_the_gpu)]
)
def test_every_family_is_captured(model_type: str, caplog: pytest.LogCaptureFixture) -> None:
    def make_encoder() -> Encoder:
        return tiny_encoder(model_type=model_type)

    _, expected = learned(Adapter, tasks(), "eager", encoder=make_encoder)
    _, found = learned(Adapter, tasks(), "captured", encoder=make_encoder)
    assert not caplog.records
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)


@cuda
def test_tasks_keep_what_they_learned_and_heads_of_their_own() -> None:
    chosen = tasks()
    first, _ = learned(Adapter, chosen[:1], "captured")
    all_, _ = learned(Adapter, chosen, "captured")
    states = {task.name: all_.served_state(task.name) for task in chosen}
    for name, tensor in first.served_state("a").items():
        assert torch.equal(tensor.cpu(), states["a"][name].cpu()), name
    heads = [states[task.name][f"heads.{task.name}.weight"] for task in chosen]
    assert len({head.data_ptr() for head in heads}) == len(chosen)


@cuda
def test_what_earlier_tasks_own_leaves_the_gpu_and_comes_back_to_serve() -> None:
    chosen = tasks()
    learner, _ = learned(Adapter, chosen, "captured")
    for task in chosen[:-1]:
        own = learner.task_state(task.name)
        assert {tensor.device.type for tensor in own.values()} == {"cpu"}
        with learner.serving(task):
            inside = dict(learner.model.named_parameters())
            for name, tensor in own.items():
                assert inside[name].is_cuda
                assert torch.equal(inside[name].cpu(), tensor), name
    with pytest.raises(KeyError):
        learner.model.head("a")


@cuda
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("make", [Adapter, Replay, Ewc, Lwf])
@pytest.mark.parametrize("step", [1, 7, 16])
def test_a_captured_run_goes_on_bit_for_bit(
    step: int, make: Callable[[], Learner], half: bool
) -> None:
    chosen = tasks()[:2]
    whole, losses = learned(make, chosen, "captured", half=half)
    with pytest.raises(StopError) as stopped:
        learned(make, chosen, "captured", half=half, stop=(1, step))
    again, rest = learned(make, chosen, "captured", half=half, resumed=stopped.value.state)
    assert rest[1] == losses[1]
    for name, tensor in whole.served_state("b").items():
        assert torch.equal(tensor, again.served_state("b")[name]), name


def test_what_cannot_be_captured_is_eager_and_says_why() -> None:
    assert "graphs need a CUDA device" in str(
        pick_engine("auto", Adapter(), CPU, 8, counting=False)
    )
    assert str(pick_engine("eager", Adapter(), CPU, 8, counting=False)) == "eager"
    assert "cannot be captured" in str(pick_engine("auto", Gem(), GPU, 8, counting=False))
    assert "no training steps" in str(pick_engine("auto", Majority(), GPU, 8, counting=False))
    assert "operations are counted" in str(pick_engine("auto", Adapter(), GPU, 8, counting=True))
    with pytest.raises(UserError, match="captured cannot be: graphs need a CUDA device"):
        pick_engine("captured", Adapter(), CPU, 8, counting=False)


def test_room_for_more_outputs_changes_nothing() -> None:
    torch.manual_seed(0)
    own, roomy = Head(6, 3), Head(6, 3, 32)
    roomy.take(own)
    features, labels = torch.randn(5, 6), torch.tensor([0, 2, 1, 1, 0])
    losses = []
    for head in (own, roomy):
        groups = [{"params": [head.weight], "weight_decay": 0.01}, {"params": [head.bias]}]
        optimizer = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.0)  # as `optimizer_for` does
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(head(features), labels)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        assert head.eval()(features).shape == (5, 3)
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    for name, rows in roomy.state().items():
        torch.testing.assert_close(rows, own.state()[name])
    assert torch.equal(roomy.weight[3:], torch.zeros(29, 6))
    assert torch.equal(roomy.bias[3:], torch.full((29,), Head.NEVER))
    back = Head(6, 3)
    back.take(roomy)
    assert torch.equal(back.weight, roomy.weight[:3])


@pytest.mark.parametrize("rooms", [(None, 32), (32, None)])
def test_what_was_learned_with_room_goes_on_without(rooms: tuple[int | None, int | None]) -> None:
    heads = [Head(6, 3, room) for room in rooms]
    heads[1].take(heads[1])
    optimizers = [torch.optim.AdamW(head.parameters()) for head in heads]
    heads[0](torch.randn(4, 6)).logsumexp(1).sum().backward()
    optimizers[0].step()
    named = [{f"heads.a.{n}": p for n, p in head.named_parameters()} for head in heads]
    load_tensors(capture(named[0], optimizers[0], {}, []), named[1], optimizers[1])
    for name, rows in heads[0].state().items():
        assert torch.equal(heads[1].state()[name], rows)
        moment = [
            o.state[p[f"heads.a.{name}"]]["exp_avg"] for o, p in zip(optimizers, named, strict=True)
        ]
        assert torch.equal(moment[0][:3], moment[1][:3])
        assert not moment[1][3:].any() or rooms[1] is None


@cuda
@pytest.mark.parametrize("mask", ["none", "labels_trick", "task"])
@pytest.mark.parametrize("make", [Finetune, Replay, Lwf, Ewc])
def test_captured_steps_of_a_shared_head_learn_what_eager_ones_do(
    make: Callable[[], Learner], mask: str
) -> None:
    """The head grows from task to task, and what a mask hides changes with the batch."""
    plain = [made_task("a", 3, 40), made_task("b", 4, 40), made_task("c", 2, 40)]
    tasks = with_shared_head(plain, [])
    (eager, expected), (captured, found) = (
        learned(make, tasks, engine, mask=mask) for engine in ("eager", "captured")
    )
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    heads = [learner.model.head(SHARED_HEAD).weight for learner in (eager, captured)]
    assert heads[0].shape == (9, 16)
    torch.testing.assert_close(*heads, rtol=1e-3, atol=1e-5)


@cuda
@pytest.mark.parametrize("mask", ["none", "labels_trick", "task"])
def test_a_shared_head_learns_in_bf16_too(mask: str) -> None:
    """There every batch is padded, with rows that have no class."""
    plain = [made_task("a", 3, 37), made_task("b", 4, 37)]
    tasks = with_shared_head(plain, [])
    (_, expected), (_, found) = (
        learned(Finetune, tasks, engine, half=True, mask=mask) for engine in ("eager", "captured")
    )
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=0.05, abs=0.02)
