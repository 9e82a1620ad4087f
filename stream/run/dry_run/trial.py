"""A learner that is thrown away learns a few steps of a few tasks, so that a run can be foretold.

It learns through `fit` and is scored through `Run.measure`, as in a run, on fewer rows.
"""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import torch

from stream.config.run import TrainingConfig
from stream.data.batching import epoch_order, padded_length, training_rows
from stream.data.shared_head import with_shared_head
from stream.data.task import Split, Task
from stream.learners.base import Learner
from stream.run.accounting import ServedFingerprints, count_stored
from stream.run.dry_run.costs import Costs, Line
from stream.run.run import Run
from stream.run.setup import build_run
from stream.seeding import numpy_generator
from stream.training.fit_state import Step
from stream.training.loop import fit

TASKS = 4
FEWEST_STEPS, MOST_STEPS = 4, 24
SECONDS_A_TASK = 5.0
SCORED_ROWS = 256
PART = 4  # the second score is of so much fewer rows
LOOKED_AT = 8192  # rows whose lengths say how wide batches are


@dataclass
class _Measured:
    """What was measured so far; factors are those of `Costs`."""

    steps: list[tuple[tuple[float, float, float], float]] = field(default_factory=list)
    first_steps: list[tuple[tuple[float, float, float], float]] = field(default_factory=list)
    endings: list[tuple[tuple[float, float], float]] = field(default_factory=list)
    scores: list[tuple[tuple[float, float], float]] = field(default_factory=list)
    fingerprints: list[tuple[tuple[float, float], float]] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    warm_s: float = 0.0


def measure(run: Run, show: Callable[[str], None] = lambda detail: None) -> Costs:
    """Return what the learner of a run costs; the run is of no use afterwards.

    Args:
        run: it is ready for its first task, and nothing of it is on disk.
        show: called with what is measured next.

    Raises:
        TrainingDivergedError: a loss that is not finite.
    """
    chosen, found = sampled(run.tasks), _Measured()
    one_head = run.learner.shares_head
    if one_head:  # which meets classes in the order of its stream
        chosen = with_shared_head(chosen, run.config.stream.shared_labels)
    if one_head or run.learner.tags.is_multitask or reads_earlier(run.learner):
        # One that learns all tasks at once, or makes room for them in order, gets no others.
        run = _anew(run, [_reduced(run, task, FEWEST_STEPS) for task in chosen])
    found.warm_s = run.measure(_reduced(run, chosen[0], 1)).seconds
    steps = FEWEST_STEPS
    for index, task in enumerate(chosen):
        show(f"learning, {index + 1} of {len(chosen)} tasks")
        pace = _learn(run, index, _reduced(run, task, steps), steps, found)
        steps = int(np.clip(SECONDS_A_TASK / max(pace, 1e-6), FEWEST_STEPS, MOST_STEPS))
        _fingerprint(run, index, found)
    for index, task in enumerate(chosen):
        show(f"scoring, {index + 1} of {len(chosen)} tasks")
        _score(run, task, found)
    return _costs(run, found, len(chosen))


def sampled(tasks: Sequence[Task]) -> list[Task]:
    """Return a few tasks, from short to long texts; one of middle length comes first."""
    by_length = sorted(tasks, key=lambda task: float(task.split("train").lengths.mean()))
    places = np.unique(np.linspace(0, len(by_length) - 1, TASKS).round().astype(int)).tolist()
    middle = places.pop(len(places) // 2)
    return [by_length[place] for place in (middle, *places)]


def reads_earlier(learner: Learner) -> bool:
    """Whether a step reads the more modules, the more tasks were learned."""
    return learner.tags.reads_past_tasks or learner.overrides("sources")


def batch_tokens(split: Split, batch_size: int) -> float:
    """Return about how many padded tokens a training batch of a split has."""
    generator = numpy_generator(0, "dry run")
    places = generator.permutation(len(split))[:LOOKED_AT]
    lengths = split.lengths_of(np.sort(places))
    batches = epoch_order(lengths, batch_size, generator)
    return fmean(_tokens(lengths[rows]) for rows in batches)


def _tokens(lengths: np.ndarray) -> float:
    """Return the tokens of a batch of examples of these lengths, with padding."""
    return float(len(lengths) * padded_length(lengths))


def _anew(run: Run, tasks: list[Task]) -> Run:
    """Return a run of a fresh learner on other tasks."""
    config = replace(run.config, learner=replace(run.config.learner))
    return build_run(config, Path(), tasks=tasks)


def _reduced(run: Run, task: Task, steps: int) -> Task:
    """Return a task with rows for a few steps, the longest among them, and few to be scored."""
    size, split = run.config.training.batch_size, run.config.evaluation.split
    train, generator = task.split("train"), numpy_generator(0, "dry run", task.name)
    longest = np.argsort(-train.lengths, kind="stable")[:size]
    others = np.setdiff1d(generator.permutation(len(train))[: steps * size], longest)
    rows = np.sort(np.concatenate([longest, others])[: steps * size])
    held_out = task.split(split)
    few = np.sort(generator.permutation(len(held_out))[:SCORED_ROWS])
    return replace(task, splits={"train": train.select(rows), split: held_out.select(few)})


def _learn(run: Run, index: int, task: Task, steps: int, found: _Measured) -> float:
    """Learn a task for at least some steps; return the seconds of a step."""
    training = replace(run.config.training, epochs=1, min_steps=steps)
    ends = [time.perf_counter()]

    def on_step(step: Step) -> None:
        if run.device.type == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    report = fit(run.learner, task, training, on_step, engine=run.engine)
    seconds = np.diff(ends).tolist()[1:]  # the first one began before its step
    tokens = _tokens_of_steps(run, task, training, report.steps)[1:]
    into = found.steps if index else found.first_steps
    earlier = index if reads_earlier(run.learner) else 0
    into += [((1.0, t, t * earlier), s) for t, s in zip(tokens, seconds, strict=True)]
    pace = median(seconds) if seconds else 0.0
    rest = max(report.seconds - pace * report.steps, 0.0)
    found.endings.append(((1.0, len(task.split("train"))), rest))
    found.kept.append(_kept(run))
    return pace


def _tokens_of_steps(run: Run, task: Task, training: TrainingConfig, steps: int) -> list[float]:
    """Return the padded tokens of a task's own rows in each step."""
    lengths, size = task.split("train").lengths, training.batch_size
    epochs = run.learner.workload(task, training).epochs
    own = [
        _tokens(lengths[rows])
        for epoch in range(epochs)
        for rows in training_rows(task, size, run.config.seed, epoch)
    ]
    return own if len(own) == steps else [fmean(own) if own else 0.0] * steps


def _kept(run: Run) -> int:
    """Return the bytes that the learner keeps now."""
    buffer = run.learner.buffer
    stored = count_stored(run.learner.stored_states(run.learner.learned))[1]
    return stored + (0 if buffer is None else buffer.nbytes)


def _fingerprint(run: Run, index: int, found: _Measured) -> None:
    """Measure how long the fingerprints of all tasks so far take."""
    began = time.perf_counter()
    fingerprints = ServedFingerprints(run)
    for task in run.learner.learned:
        fingerprints.of(task)
    found.fingerprints.append(((1.0, index + 1.0), time.perf_counter() - began))


def _score(run: Run, task: Task, found: _Measured) -> None:
    """Score a task on many rows and on few."""
    split = run.config.evaluation.split
    whole = _reduced(run, task, 1)
    held_out = whole.split(split)
    part = held_out.select(np.arange(0, len(held_out), PART))
    few = replace(whole, splits={**whole.splits, split: part})
    for some in (whole, few):
        seconds = run.measure(some).seconds
        found.scores.append(((1.0, float(some.split(split).lengths.sum())), seconds))


def _costs(run: Run, found: _Measured, tried: int) -> Costs:
    """Return the lines through what was measured."""
    later = found.steps or found.first_steps
    step = _line(later)
    ratios = [s / step.at(*f) for f, s in found.first_steps if step.at(*f) > 0]
    owned, shared = _checkpoint_bytes(run)
    growth = (found.kept[-1] - found.kept[0]) / max(tried - 1, 1)
    return Costs(
        step=step,
        first=median(ratios) if ratios and found.steps else 1.0,
        ending=_line(found.endings[1:] or found.endings),
        scoring=_line(found.scores),
        warm_s=found.warm_s,
        fingerprint=_line(found.fingerprints),
        peak_bytes=peak_bytes(run.device),
        kept_bytes=growth,
        owned_bytes=owned / tried,
        shared_bytes=shared,
        moments_bytes=3 * sum(p.nbytes for p in run.learner.trained_parameters().values()),
        tried=tried,
        steps=len(found.steps) + len(found.first_steps) + tried,
        evaluations=len(found.scores) + 1,
    )


def _line(measured: list[tuple[tuple[float, ...], float]]) -> Line:
    return Line.through([factors for factors, _ in measured], [seconds for _, seconds in measured])


def _checkpoint_bytes(run: Run) -> tuple[int, int]:
    """Return the bytes that a checkpoint holds of the tasks so far, and of all of them together."""
    learner = run.learner
    own = sum(t.nbytes for task in learner.learned for t in learner.task_state(task.name).values())
    return own, sum(tensor.nbytes for tensor in learner.shared_state().values())


def peak_bytes(device: torch.device) -> int:
    """Return the most memory that this process had so far: of its GPU, or in all."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
