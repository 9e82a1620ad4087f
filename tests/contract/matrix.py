"""Every learner on every encoder family: one battery on two tiny tasks.

The tests run it for `COMMON` learners; `python -m benchmarks.encoders.matrix` runs
it for all of them and writes what it finds into docs/encoders.md.
"""

import copy
import dataclasses
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from transformers import CONFIG_MAPPING

from stream.data.task import Task
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.fingerprint import tensor_digest
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.models.encoder import Encoder
from stream.models.families.catalogue import known_types
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task
from tests.contract.from_disk import check_goes_on, check_serves_from_disk, evidence
from tests.models.tiny_families import FAMILIES, family_encoder, without_dropout

COMMON = ("adapter", "lora", "finetune", "replay", "prompt_tuning", "joint")
"""The learners that have a column of their own; the tests run them on every family."""
WHOLE = ("finetune", "replay", "joint")  # these train every weight of the encoder
STAND_INS = {"finetune": "replay", "joint": "replay"}
"""Learners that do nothing to an encoder that another one does not do, and that one.

Replay is finetune until there are stored rows, and joint is it with other rows in a batch. The
tests run the battery for those two on `ONE_OF_EACH`; the benchmark runs it on every family.
"""
ONE_OF_EACH = ("bert", "t5", "gemma3_text")  # an encoder, half of an encoder-decoder, a decoder
GOING_ON = ("replay",)  # all weights, and a buffer
GOING_ON_ONE_OF_EACH = ("adapter",)  # isolated weights: what it has in a family comes back anyway
ALIKE = {
    "ernie": "bert",
    **dict.fromkeys(("data2vec-text", "camembert", "xlm-roberta"), "roberta"),
    "mt5": "t5_gated",  # they differ in the decoder alone
}
"""Shapes of one file of stream/models/families and, in transformers, the code of another one.

They differ in the names of their classes alone, so the tests run the battery on the other one.
"""
SPARSE = ("lt_sft", "diff_pruning")  # which entries are a task's own is learned
NORM = re.compile(r"norm|\bln(_|\b)", re.IGNORECASE)
ROWS = 8  # one batch


def shapes() -> list[str]:
    """Return the tiny shapes whose family is described, and in transformers as installed."""
    known = set(known_types()) & set(CONFIG_MAPPING)
    return [name for name, shape in FAMILIES.items() if shape["model_type"] in known]


def learners() -> list[str]:
    """Return the learners that read the encoder, those of `COMMON` first."""
    others = sorted(name for name in LEARNERS if LEARNERS[name].tags.uses_encoder)
    return [*COMMON, *(name for name in others if name not in COMMON)]


def made(name: str) -> Learner:
    """A learner that lets all it trains move.

    One that leaves most entries of a tensor alone by choice moves all of them; adapters have more
    than the one unit that a width of 16 would give them, and that a ReLU may close; gates are not
    so steep that they have no gradient, as those of a task of one step would be; a pool has one
    prompt, since which one a text is nearest to is another one where distances are rounded.
    """
    fields = {field.name for field in dataclasses.fields(LEARNERS[name])}
    given = {"fraction": 1.0, "sparsity": 1.0, "reduction": 2, "s_max": 10.0, "pool": 1, "taken": 1}
    learner = LEARNERS[name](**{field: given[field] for field in fields & given.keys()})
    learner.lr = min(learner.lr, 2e-3)  # rounding in bf16 grows with the rate
    return learner


def made_pair() -> list[Task]:
    """Two classes, then three."""
    return [made_task("a", 2, ROWS), made_task("b", 3, ROWS)]


def going_on(shape: str) -> tuple[str, ...]:
    """Return the learners that are stopped within a task on a shape, and go on from disk."""
    return GOING_ON + GOING_ON_ONE_OF_EACH if shape in ONE_OF_EACH else GOING_ON


def stand_in(name: str, shape: str) -> str:
    """Return the learner that the tests run on a shape for a common one; mostly that one itself."""
    return name if shape in ONE_OF_EACH else STAND_INS.get(name, name)


@cache
def still(shape: str) -> Encoder:
    """A family's tiny encoder without dropout; to be copied, not to be changed."""
    return without_dropout(family_encoder(shape))  # a mask differs between precisions


@cache
def verdict(name: str, shape: str) -> str:
    """Run the battery: return why the learner refuses the encoder; empty where it works.

    Args:
        name: of a learner.
        shape: of `FAMILIES`.

    Raises:
        AssertionError: a check failed. Any other error is a defect too.
    """

    def make() -> Learner:
        return made(name)

    def encoder() -> Encoder:
        return copy.deepcopy(still(shape))

    try:
        run = Stream(make(), made_pair(), encoder=encoder)
    except UserError as error:
        return str(error)
    with TemporaryDirectory(prefix="matrix-") as folder:
        logits = check_learning(run)
        expected = evidence(run, run.tasks)
        check_serves_from_disk(run, make, Path(folder, "served"), expected)
        if name in going_on(shape):  # on BERT, every learner has to
            check_goes_on(make, run.tasks, expected, Path(folder), encoder)
    check_bf16(run.fresh(make(), precision="bf16"), logits)
    return ""


def snapshot(state: dict[str, torch.Tensor]) -> dict[str, str]:
    """Return the digest of each tensor."""
    return {name: tensor_digest(tensor) for name, tensor in state.items()}


def check_learning(run: Stream) -> np.ndarray:
    """What is promised changes and nothing else; what is isolated stays; what is stored adds up.

    Returns the logits of the first task right behind it.
    """
    learner, (first, second) = run.learner, run.tasks
    begun = snapshot(dict(run.model.encoder.named_parameters()))
    fit(learner, first, SHORT)
    check_promise(run, begun)
    (logits,) = logits_of(learner, [first], "test", 512, CPU)
    digest, served = run.digest(first), snapshot(learner.served_state(first.name))
    stored, _ = count_stored(learner.stored_states([first]))
    learner.start(second)
    trained = set(learner.trained_parameters())
    before = snapshot(dict(run.model.named_parameters()))
    fit(learner, second, SHORT)
    named = dict(run.model.named_parameters())
    after = snapshot({name: named[name] for name in before})
    changed = {name for name in before if after[name] != before[name]}
    assert changed == trained, f"changed, or did not: {sorted(changed ^ trained)}"
    check_memory(run, digest, served)
    check_ledger(run, sum(named[name].numel() for name in changed), stored)
    return logits


def check_ledger(run: Stream, changed: int, stored: int) -> None:
    """Hold what is counted against the sizes of the tensors that changed.

    Args:
        run: both tasks are learned.
        changed: numbers in the tensors that the second one changed.
        stored: numbers that were stored after the first one.
    """
    learner, second = run.learner, run.tasks[1]
    if learner.name not in SPARSE:
        assert learner.num_trained(second) == changed
    if learner.name in COMMON:
        head = (run.model.encoder.width + 1) * second.num_outputs
        own = head if learner.name in WHOLE else changed
        now, _ = count_stored(learner.stored_states(run.tasks))
        assert now - stored == own, "what a task adds to what is stored"


def check_promise(run: Stream, begun: dict[str, str]) -> None:
    """Of the pretrained weights only those change that the method is known to train."""
    encoder = run.model.encoder
    values = {n: p for n, p in encoder.named_parameters() if n in encoder.pretrained}
    changed = {name for name, found in snapshot(values).items() if found != begun[name]}
    read = {name for name in values if "pooler" not in name}
    promised = {
        **dict.fromkeys(WHOLE, read),
        "adapter": {name for name in read if NORM.search(name)},
        "lora": set(),
        "prompt_tuning": set(),
    }
    if run.learner.name in promised:
        found = changed ^ promised[run.learner.name]
        assert not found, f"pretrained weights changed, or did not: {sorted(found)}"


def check_memory(run: Stream, digest: str, served: dict[str, str]) -> None:
    """Hold what serves the first task, and its logits, against what they were."""
    tags, first = run.learner.tags, run.tasks[0]
    logits = [logits_of(run.learner, [task], "test", 512, CPU)[0] for task in run.tasks]
    assert [found.shape for found in logits] == [(ROWS, 2), (ROWS, 3)]
    assert all(np.isfinite(found).all() for found in logits)
    same = run.digest(first) == digest
    if tags.perfect_memory:
        assert same, "the logits of the first task changed"
    elif tags.makes_steps and not tags.is_multitask:
        assert not same, "one encoder learned, and the logits of the first task are the same"
    if tags.parameter_isolation:
        now = snapshot(run.learner.served_state(first.name))
        assert now == served, "what serves the first task changed"


def check_bf16(half: Stream, exact: np.ndarray) -> None:
    """A copy of the encoder in bf16 computes what it does: all that was inserted is copied.

    Args:
        half: computes in bf16, and has learned nothing yet.
        exact: logits of the first task behind it, in float32.
    """
    fit(half.learner, half.tasks[0], SHORT)
    (found,) = logits_of(half.learner, half.tasks[:1], "test", 512, CPU)
    np.testing.assert_allclose(found, exact, atol=0.1 * max(float(np.abs(exact).max()), 0.1))
