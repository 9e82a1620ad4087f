"""The configuration: everything composes, labels stay text, mistakes name the nearest choice."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra.types import RunMode
from omegaconf import OmegaConf

from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.config.backbone import BackboneConfig
from stream.config.compose import searched_too
from stream.config.composition import Composition
from stream.config.loader import CONFIG_NAME, RUN_MODE, composed_once, reading
from stream.config.run import RunConfig
from stream.config.typed import parse
from stream.data.build import arrange
from stream.data.task import Task
from stream.errors import UserError
from stream.learners import LEARNERS
from stream.run.settings import with_learner
from tests.builders import made_task
from tests.composed import compose_run

CONF = Path(__file__).parent.parent.parent / "conf"
PAPER_GLUE = ["cola", "sst2", "mrpc", "stsb", "qqp"]
PAPER_GLUE += ["mnli_matched", "mnli_mismatched", "qnli", "rte"]


ONE = "task=[cola]"  # composing every task of the paper takes four times as long


@cache
def composed(*overrides: str) -> RunConfig:
    """What overrides say; to be read only."""
    return compose_run(CONF, overrides)[0]


@cache
def composition(learner: str) -> Composition:
    """Settings with a learner; to be copied before they change."""
    return Composition.of(CONF, [f"learner={learner}", ONE])


def test_defaults_are_the_paper() -> None:
    config = composed()
    assert config.stream_name == "houlsby26"
    assert len(config.task) == 26
    assert list(config.task)[:9] == PAPER_GLUE
    learner = config.learner
    assert (learner.name, learner.size, learner.init_std) == ("adapter", 64, 1e-2)
    training = config.training
    assert (training.batch_size, training.warmup, training.clip_norm) == (32, 0.1, 1.0)
    assert config.evaluation.reuse == "off"
    assert config.data.source == "generated"


@pytest.mark.parametrize("stream", [p.stem for p in sorted((CONF / "stream").glob("*.yaml"))])
def test_every_stream_composes_and_knows_its_tasks(stream: str) -> None:
    config = composed(f"stream={stream}")
    assert list(config.task) == config.stream.tasks
    assert config.stream_name == stream


@pytest.mark.parametrize("backbone", [p.stem for p in sorted((CONF / "backbone").glob("*.yaml"))])
def test_every_backbone_composes(backbone: str) -> None:
    """All are files that Hydra merges alike, so it composes one; the others take its place."""
    path = CONF / "backbone" / f"{backbone}.yaml"
    assert "@package" not in path.read_text()
    assert "defaults" not in OmegaConf.load(path)
    base = composition("adapter")
    copied = replace(base, settings=deepcopy(base.settings))
    schema = OmegaConf.structured(BackboneConfig)
    copied.settings.backbone = OmegaConf.merge(schema, OmegaConf.load(path))
    copied.settings.backbone.location = "somewhere"
    assert copied.run_config().backbone.name == backbone


def test_a_backbone_is_chosen_by_its_name() -> None:
    config = composed("backbone=bert_large", "backbone.location=somewhere", ONE)
    assert (config.backbone.name, config.backbone.location) == ("bert_large", "somewhere")


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_every_learner_composes_with_its_own_defaults(learner: str) -> None:
    """All are in Hydra's store, so it composes one; the others take its place."""
    base = composition("adapter")
    copied = replace(base, settings=deepcopy(base.settings))
    copied.settings.learner = ConfigStore.instance().load(f"learner/{learner}.yaml").node
    assert with_learner(copied.run_config()).learner == LEARNERS[learner]()


def test_a_learner_is_chosen_by_its_name() -> None:
    config = composed("learner=finetune", ONE)
    assert with_learner(config).learner == LEARNERS["finetune"]()


def test_the_classes_add_up() -> None:
    """Table 3 has 249 classes; ours has 11 complaint classes instead of 157."""
    specs = composed().task
    extra = [s for n, s in specs.items() if n not in PAPER_GLUE]
    assert sum(len(s.labels or []) for s in extra) == 249 - 157 + 11


def test_labels_are_quoted_in_yaml(all_specs: dict) -> None:
    """Unquoted yes, no, on and off become booleans and then the texts "True" and "False"."""
    assert all_specs["crowdflower_global_warming"].labels == ["No", "Yes"]
    for name, spec in all_specs.items():
        text = (CONF / "task" / f"{name}.yaml").read_text()
        for label in spec.labels or []:
            assert f'- "{label}"' in text


def test_task_list_is_the_order() -> None:
    config = composed("task=[rte,cola]", "learner.size=8")
    assert list(config.task) == ["rte", "cola"]
    assert config.stream_name == "custom"
    assert config.learner.size == 8


def test_orders() -> None:
    tasks = [made_task(n, rows=r) for n, r in (("a", 30), ("b", 10), ("c", 20), ("d", 25))]

    def names(order: str, seed: int | None = None, given: list[Task] = tasks) -> str:
        return "".join(t.name for t in arrange(given, order, seed))

    assert names("given") == "abcd"
    assert names("reversed") == "dcba"
    assert names("by_size") == "bcda"
    assert names("random", 1) == names("random", 1, tasks[::-1])  # of names, not of positions
    assert len({names("random", seed) for seed in range(20)}) > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learner=adaptor"], "unknown learner 'adaptor'. Did you mean 'adapter'"),
        (["learner="], "unknown learner ''. Valid: adapter"),
        (["task=[sst3]"], "unknown task 'sst3'. Did you mean 'sst2'"),
        (["stream=houlsby"], "Did you mean 'houlsby26'"),
        (["experiment=smok"], "Did you mean 'smoke'"),
        (["+learner.sise=1"], "unknown setting 'learner.sise'. Did you mean 'learner.size'"),
        (["data=files"], "data.root is needed"),
        (["backbone=folder"], "needs backbone.location"),
        (["seed=1,2"], r"seed=1,2 need -m"),
        (["nonsense"], "cannot read 'nonsense'"),
        (["-m", "learner=adapter,finetun"], "Did you mean 'finetune'"),
        (["-m", "learner.size=8,0"], "learner.size must be at least 1, got 0"),
        (["-m", "experiment=smoke,fig4_sizes"], "fig4_sizes sweeps learner.size, seed by itself"),
        (["--config-dir", "/no/such/folder"], "no such folder"),
        (["-cd", str(CONF), "learner=finetun"], "Did you mean 'finetune'"),
        (["-m", "learner=adapter", "--cfg", "job"], "--multirun and --cfg exclude each other"),
    ],
)
def test_mistakes_get_one_clear_line(arguments: list[str], message: str) -> None:
    chosen = any(argument.startswith(("task=", "stream=", "experiment=")) for argument in arguments)
    with pytest.raises(UserError, match=message) as caught:
        check_command_line(CONF, CommandLine(arguments if chosen else [*arguments, ONE]))
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    ("learner", "settings", "message"),
    [
        (
            "adapter",
            "limits.trian=5",
            "unknown setting 'limits.trian'. Did you mean 'limits.train'",
        ),
        (
            "adapter",
            "learner.strength=5",
            "'learner.strength'; it belongs to learner=",
        ),
        ("finetune", "learner.size=8", "unknown setting 'learner.size'"),
        ("adapter", "data.root=x", "unknown setting 'data.root'; it belongs to data=files."),
        ("adapter", "sed=1", "unknown setting 'sed'. Did you mean 'seed'"),
        ("adapter", "learner.size=0", "learner.size must be at least 1, got 0"),
        ("adapter", "learner.size=big", "learner.size: .*'big'"),
        ("adapter", "learner.lr=-1", "learner.lr must be positive"),
        ("adapter", "learner.lr=abc", "learner.lr: must be a number, got 'abc'"),
        ("adapter", "seed=1.5", "seed: must be a whole number, got '1.5'"),
        (
            "adapter",
            "backbone.shape.a=1",
            r"unknown setting 'backbone.shape.a'. Valid: none; \+backbone.shape.a=VALUE adds one",
        ),
        ("adapter", "task.rte.version=1", "unknown task of this run 'rte'.* Valid: cola"),
        ("adapter", "stream.shared_labels=[[cola,rtee]]", "Did you mean 'rte'"),
        ("adapter", "stream.shared_labels=[[cola]]", "two tasks or more, got .'cola'."),
        ("replay", "learner.budget=-3", "learner.budget must be at least 1, or all, got -3"),
        ("adapter", "limits.eval=0", "limits.eval must be at least 1"),
        ("adapter", "order=up", "unknown order 'up'"),
        ("adapter", "order_seed=3", "no effect with order=given"),
        ("replay", "learner.size=8", "learner.size=8 has no effect with learner.part="),
        ("ewc", "learner.decay=0.5", "learner.decay=0.5 has no effect with"),
        ("adapter", "probe.rows=8", "probe.rows=8 has no effect without probe.every"),
        (
            "adapter",
            "checkpoint.enabled=false checkpoint.every=3",
            "checkpoint.every=3 has no effect",
        ),
        ("adapter", "training.warmup=1.5", "training.warmup must be below 1, got 1.5"),
        ("adapter", "training.engine=capture", "Did you mean 'captured'"),
    ],
)
def test_mistakes_in_values_get_one_clear_line(learner: str, settings: str, message: str) -> None:
    """As a sweep tries its jobs, without composing each of them."""
    base = composition(learner)
    copied = replace(base, settings=deepcopy(base.settings))
    with pytest.raises(UserError, match=message) as caught:
        copied.with_values(parse(settings.split()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["learner.sise=1", "order_seed=3"])
def test_composing_refuses_the_same(value: str) -> None:
    base = composition("adapter")
    with pytest.raises(UserError) as cheap:
        replace(base, settings=deepcopy(base.settings)).with_values(parse([value]))
    with pytest.raises(UserError) as composed:
        compose_run(CONF, ["learner=adapter", ONE, value])
    assert str(cheap.value) == str(composed.value)


def test_a_run_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(UserError, match="is not empty"):
        check_command_line(CONF, CommandLine([f"hydra.run.dir={tmp_path}", ONE]))
    check_command_line(CONF, CommandLine([f"hydra.run.dir={tmp_path / 'new'}", ONE]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["results.json"]


def test_right_command_lines_pass() -> None:
    swept = ["-m", "learner=adapter,finetune,replay", "seed=1,2", ONE]
    check_command_line(CONF, CommandLine(swept))
    random = ["task=[sst2,cola,rte]", "learner.size=8", "order=random", "order_seed=3"]
    check_command_line(CONF, CommandLine(random))
    annealed = ["learner=replay", "learner.budget=all", "learner.sampling=annealed"]
    check_command_line(CONF, CommandLine([*annealed, ONE]))
    # What is only shown may lack a value.
    check_command_line(CONF, CommandLine(["--cfg", "job", "data=files", ONE]))
    check_command_line(CONF, CommandLine(["data=files", ONE, "--info"]))
    check_command_line(CONF, CommandLine(["-h"]))


def test_own_tasks_come_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    text = (CONF / "task" / "sst2.yaml").read_text().replace("sst2:", "mine:", 1)
    (tmp_path / "task" / "mine.yaml").write_text(text)
    check_command_line(CONF, CommandLine(["--config-dir", str(tmp_path), "task=[mine,sst2]"]))


def test_a_backbone_file_of_an_earlier_version_is_told_what_to_remove(tmp_path: Path) -> None:
    (tmp_path / "backbone").mkdir()
    text = "defaults: [backbone_schema, _self_]\nname: mine\norigin: random\n"
    (tmp_path / "backbone" / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match="'backbone_schema': a backbone's YAML needs no defaults"):
        composed(searched_too(tmp_path), "backbone=mine", ONE)


def test_a_yaml_that_changes_is_composed_anew(tmp_path: Path) -> None:
    """What the same files give is put together once, and nobody can change it for others."""
    path = tmp_path / "task" / "mine.yaml"
    path.parent.mkdir()
    rte = (CONF / "task/rte.yaml").read_text().replace("rte:", "mine:", 1)
    found = []
    for version in (2, 30, 31):  # a file of the same size is another too
        path.write_text(rte.replace("version: 1", f"version: {version}"))
        chosen = ["task=[mine]", searched_too(tmp_path), f"seed={version}"]
        for _ in range(2):
            composition = Composition.of(CONF, chosen)
            config = composition.run_config()
            found.append((config.seed, config.task["mine"].version))
            composition.settings.task.mine.version = 7
    assert found == [(n, n) for n in (2, 2, 30, 30, 31, 31)]


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "backbone" / "mine.yaml"
    path.parent.mkdir()
    found = []
    for size in (16, 32, 8):
        path.write_text(f"name: mine\norigin: random\nshape: {{hidden_size: {size}}}\n")
        for _ in range(2):
            chosen = [searched_too(tmp_path), "backbone=mine", ONE]
            config = Composition.of(CONF, chosen).run_config()
            assert config.backbone.shape is not None
            found.append(config.backbone.shape["hidden_size"])
    assert found == [16, 16, 32, 32, 8, 8]


def test_only_what_was_checked_is_handed_to_hydra() -> None:
    def asked(loader: ConfigLoaderImpl, *overrides: str) -> Any:
        return loader.load_configuration(
            config_name=CONFIG_NAME, overrides=[*overrides], run_mode=RunMode.RUN
        )

    with reading(CONF) as loader, composed_once():
        asked(loader, "seed=1")
        other = asked(loader, "seed=2", RUN_MODE)
        same = asked(loader, "seed=1", RUN_MODE)
        assert (other.seed, same.seed) == (2, 1)
        assert same.hydra.overrides.hydra == [RUN_MODE]
        assert same.hydra.mode == RunMode.RUN
        anew = asked(loader, "seed=1", RUN_MODE)
        assert OmegaConf.to_container(anew) == OmegaConf.to_container(same)
