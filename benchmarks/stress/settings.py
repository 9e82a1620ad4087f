"""Every setting of every learner, the schedule and a shared head, changed and at its ends.

Run: python -m benchmarks.stress.settings [--learners NAMES]. Each try learns three tiny tasks.
Faults are a setting of which no value changes a digest or what is counted, and an end of a range
that ends in anything but a run or one line of ours. They are listed at the end, with exit code 1.
"""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch

from benchmarks.in_process import set_up
from stream.config.run import TrainingConfig
from stream.config.setting import LARGEST, SMALLEST, Range, Rule, rules
from stream.config.shared_head import SharedHeadConfig
from stream.data.shared_head import with_shared_head
from stream.data.task import Task
from stream.errors import TrainingDivergedError, UserError
from stream.evaluation.evaluate import evaluate
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.models.encoder import load_encoder
from stream.models.task_model import TaskModel
from stream.training.loop import fit

TINY = ("backbone=tiny", "device=cpu", "task=[cola,crowdflower_airline,rte]", "learner=frozen")
ROWS = ("data.train=24", "data.validation=1", "data.test=6", "backbone.max_length=16")
SHORT = {"epochs": 2, "min_steps": 0, "batch_size": 8}
CPU = torch.device("cpu")
TRIED: Mapping[str, tuple[Any, ...]] = {
    "l2p.pool": (20,),  # not fewer than a text takes
    "pals.size": (102,),  # a multiple of the attention heads
    "pals.attention_heads": (2,),
    "topk.layers": (2,),  # as many as the tiny encoder has
    "training.min_steps": (20,),
}
BESIDES: Mapping[str, dict[str, Any]] = {"balance": {"budget": 6}}
"""What else is set while a field is tried: a buffer that is larger than a task chooses nothing."""
SAME_ON_CPU = ("training.engine", "training.gradient_checkpointing", "shared_adapter.part")
"""An engine changes speed, and layers that are computed again change memory; another part is
refused: that is `finetune`."""
Kind = type[Learner] | type[SharedHeadConfig] | None


class Trials:
    """Tiny streams that differ in one setting."""

    @cached_property
    def run(self) -> Any:
        """Where tasks and settings come from."""
        return set_up([*TINY, *ROWS])

    @cached_property
    def tasks(self) -> list[Task]:
        """Three tasks, the first of fewer training rows: some methods ask how many there are."""
        first, *others = self.run.tasks
        train = first.split("train").select(np.arange(8))
        return [replace(first, splits={**first.splits, "train": train}), *others]

    def shown(
        self, learner: Learner, training: TrainingConfig, one_head: SharedHeadConfig | None = None
    ) -> Any:
        """Return the digests after each task, and what is trained and stored."""
        tasks, backbone = self.tasks, self.run.config.backbone
        size = self.run.text_encoder.vocabulary_size
        mask = "none" if one_head is None else one_head.mask
        tasks = tasks if one_head is None else with_shared_head(tasks, [])
        model = TaskModel(load_encoder(backbone, vocabulary_size=size), 0, mask=mask)
        learner.attach(model, tasks=tasks, seed=0, pad_id=self.run.text_encoder.pad_id)
        found: list[Any] = []
        for index, task in enumerate(tasks):
            fit(learner, task, training)
            cells = [evaluate(learner, t, "test", None, CPU) for t in tasks[: index + 1]]
            found.append([learner.num_trained(task), *(cell.digest for cell in cells)])
        return found

    def faults(self, name: str, kind: Kind) -> Iterator[str]:
        """Yield what is wrong with the settings of a learner, or without one of the schedule.

        Args:
            name: the learner's name, ``training`` or ``shared_head``.
            kind: the class of the settings.
        """
        group = TrainingConfig if kind is None else kind
        for field, rule in zip(fields(group), rules(group).values(), strict=True):
            full = f"{name}.{field.name}"
            if rule.idle or full in SAME_ON_CPU:
                continue
            others = needed(rule) | BESIDES.get(field.name, {})
            before = self._with(kind, others)
            values = list(TRIED.get(full) or changes(field.default, rule))
            matter = (v for v in values if self._with(kind, others | {field.name: v}) != before)
            found = next(matter, None)
            print(f"{full}: {field.default} -> {found}", flush=True)
            if found is None:
                yield f"{full}: none of {values} changes anything"
            for value in ends(field.default, rule):
                try:
                    self._with(kind, others | {field.name: value})
                except (UserError, TrainingDivergedError) as error:
                    print(f"{full}={value}: {error}", flush=True)
                except Exception as error:  # noqa: BLE001 - that is what is looked for
                    yield f"{full}={value}: {type(error).__name__}: {error}"

    def _with(self, kind: Kind, given: Mapping[str, Any]) -> Any:
        """Return what is shown by a learner, a schedule or a shared head with some settings."""
        if kind is SharedHeadConfig:
            learner, schedule = LEARNERS["finetune"](), TrainingConfig(**SHORT)
            return self.shown(learner, schedule, SharedHeadConfig(**given))
        if kind is None:
            return self.shown(LEARNERS["adapter"](), TrainingConfig(**{**SHORT, **given}))
        return self.shown(kind(**given), TrainingConfig(**SHORT))


def needed(rule: Rule) -> dict[str, Any]:
    """Return the settings without which one has no effect."""
    return {key: 1 if wanted is None else wanted for key, wanted in (rule.needs or {}).items()}


def changes(default: Any, rule: Rule) -> Iterator[Any]:
    """Yield other values than the default, of which one should matter."""
    if isinstance(rule.valid, tuple):
        yield from (name for name in rule.valid if name != default)
    elif isinstance(default, bool):
        yield not default
    elif isinstance(default, int):
        # Smaller ones too: bounds of rows may lie above the rows that there are.
        yield from sorted({2 * default, max(default // 8, 1), max(default // 1000, 1)} - {default})
    else:
        number = 1e-3 if default is None else default
        most = rule.valid.high if isinstance(rule.valid, Range) else LARGEST
        yield from (value for value in (3 * number, number / 3, 0.5) if value <= most)


def ends(default: Any, rule: Rule) -> Iterator[float]:
    """Yield the ends of a range of numbers; of counts the lower one alone, which costs little."""
    if isinstance(rule.valid, Range):
        yield SMALLEST if rule.valid.above else rule.valid.low
        if not isinstance(default, int):
            yield 0.999 if rule.valid.below else rule.valid.high


def main() -> None:
    """Try every setting. Raises SystemExit with code 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", help="names with commas; default: all, and the schedule")
    names = parser.parse_args().learners
    trials = Trials()
    found: list[str] = []
    for name, kind in () if names else (("training", None), ("shared_head", SharedHeadConfig)):
        found += trials.faults(name, kind)
    for name in names.split(",") if names else sorted(LEARNERS):
        found += trials.faults(name, LEARNERS[name])
    print("\n".join(["", f"{len(found)} faults", *found]))
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
