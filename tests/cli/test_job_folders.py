"""The folders of a sweep's jobs: one per job, the same whatever the command line looks like."""

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from stream.cli.command_line import CommandLine
from stream.cli.job_folders import job_folder, register_job_folder
from stream.cli.outcomes import HEADINGS, Outcome, Plan, closing_lines, heading, outcomes
from stream.cli.run import of_plugins
from stream.cli.sweeps import Job, on_its_gpu, plan, run_job
from stream.config.loader import hydra_composes_alike
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.errors import UserError
from stream.formatting import DASH
from stream.run.settings import (
    as_values,
    compose_settings,
    deciding_digest,
    deciding_values,
    first_difference,
    register_groups,
)

register_job_folder()
SMALL = ("backbone=tiny", "sweep=s")


@cache
def settings(*overrides: str) -> RunConfig:
    """What overrides say; to be read only."""
    return compose_settings(overrides)[0]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder, in which jobs can be composed."""
    monkeypatch.chdir(tmp_path)
    register_groups()
    with (
        hydra_composes_alike(),
        initialize_config_dir(str(conf_folder().resolve()), version_base="1.3"),
    ):
        yield tmp_path


def composed(*overrides: str) -> DictConfig:
    """A job as Hydra composes it; overrides of Hydra itself are kept apart."""
    return compose("config", [*SMALL, *overrides], return_hydra_config=True)


def folder(swept: Sequence[str], *overrides: str) -> str:
    """The name of a job's folder in a sweep of these settings."""
    job = composed(*overrides)
    Plan(None, list(swept)).write(Path(job.hydra.sweep.dir), job.hydra.callbacks.sweep.start)
    return job_folder(job)


def test_order_and_what_else_is_swept_change_no_hash_and_settings_do(here: Path) -> None:
    one = folder(["seed"], "task=[rte]", "learner.size=8", "seed=1")
    assert one.startswith("adapter-s1-")
    end = one.rpartition("-")[2]
    same = folder(["seed", "learner.size"], "seed=1", "learner.size=8", "task=[rte]", "device=cpu")
    assert same == f"adapter-s1-size_8-{end}"
    others = [
        folder(["seed"], "task=[rte]", "learner.size=8", "seed=2"),
        folder(["probe.every"], "task=[rte]", "learner.size=8", "seed=1", "probe.every=5"),
        folder(["learner"], "task=[rte]", "learner=frozen", "seed=1"),
        folder(["learner"], "task=[rte]", "learner=majority", "seed=1"),
    ]
    assert len({name.rpartition("-")[2] for name in [one, *others]}) == 5
    (here / "runs/sweeps/s" / one).mkdir()
    assert folder(["seed", "learner.size"], "seed=1", "learner.size=8", "task=[rte]") == one


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cache", f"'{'a very long/' * 40}'"),
        ("cache", "'größe, [日本] = \"x\"'"),
        ("learner.size", "-3"),  # refused by the learner: the job fails in a folder of its own
    ],
)
def test_a_name_is_a_short_file_name(here: Path, key: str, value: str) -> None:
    name = folder([key], "task=[rte]", f"{key}={value}")
    assert len(name) < 120
    assert name.isascii()
    assert name == Path(name).name
    (here / name).mkdir()


def recorded(at: Path, config: RunConfig, status: str) -> None:
    """Write the part of a record that says which job it is."""
    values = as_values(config)
    text = {"config": values, "learner": config.learner.name, "status": status}
    at.mkdir(parents=True)
    (at / "results.json").write_bytes(msgspec.json.encode(text))


def test_a_folder_of_an_older_version_is_found_by_its_record(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path):
        return msgspec.convert(
            msgspec.json.decode(path.read_bytes()),
            msgspec.defstruct("Record", [("config", dict), ("learner", str), ("status", str)]),
        )

    monkeypatch.setattr("stream.cli.job_folders.RunRecord.read", read)
    config, _ = compose_settings([*SMALL, "task=[rte]", "seed=1"])
    sweep = here / "runs/sweeps/s"
    recorded(sweep / "0-adapter-s1", config, "partial")
    assert folder(["seed"], "task=[rte]", "seed=1") == "0-adapter-s1"
    recorded(sweep / "3-adapter-s1", config, "complete")
    assert folder(["seed"], "task=[rte]", "seed=1") == "3-adapter-s1"
    assert folder(["seed"], "task=[rte]", "seed=2").startswith("adapter-s2-")
    assert folder(["probe.every"], "task=[rte]", "probe.every=3", "seed=1") != "3-adapter-s1"


def test_a_setting_that_is_null_is_as_good_as_one_that_an_older_version_lacks() -> None:
    values = as_values(settings("task=[rte]"))
    older = {key: value for key, value in values.items() if key != "order_seed"}
    digests = {deciding_digest(deciding_values(v, "adapter")) for v in (values, older)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["learner=frozen,majority", "seed=1,2,3"], Plan(6, ["learner", "seed"])),
        (["seed=range(0,1000)"], Plan(1000, ["seed"])),
        (["seed=1"], Plan(1, [])),
        (["seed=1,2", "seed=3"], Plan(1, [])),
        (["task=[rte],[rte,sst2]", "learner=glob(adapter_*)"], Plan(14, ["task", "learner"])),
    ],
)
def test_the_plan_counts_jobs_and_names_what_differs(
    here: Path, overrides: list[str], expected: Plan
) -> None:
    sweeper = {"_target_": "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"}
    made = DictConfig({"hydra": {"sweeper": sweeper, "overrides": {"task": overrides}}})
    assert plan(made) == expected


def test_headings_and_the_table_read_well_without_a_terminal(tmp_path: Path) -> None:
    kept = [
        Outcome(0, "a-s1-00", "seed=1", "finished", "", 0.5, 0.25, 10.0),
        Outcome(1, "a-s2-11", "seed=2", "failed", "loss nan\x1b[2J", None, None, 3.0),
        Outcome(2, "a-s3-22", "seed=3", "finished", "", 0.75, None, 20.0),
        Outcome(3, "a-s4-33", "seed=4"),
        Outcome(4, "a-s5-44", "seed=5"),
    ]
    for outcome in reversed(kept):
        outcome.write(tmp_path, "start")
    found = outcomes(tmp_path, "start")
    assert found == kept
    # Two run, three are to come, each takes 15 s: 5 * 15 / 2.
    assert heading(kept[4], Plan(8), found) == "job 5 of 8: seed=5 (about 0:38 left)"
    assert heading(kept[4], Plan(None), found) == "job 5: seed=5"
    assert heading(kept[0], Plan(8), []) == "job 1 of 8: seed=1"
    lines = closing_lines(Path("sweep"), found)
    assert lines[0].split() == list(HEADINGS)
    assert lines[1].split() == ["1", "finished", "50.0", "25.0", "0:10", "a-s1-00", "seed=1"]
    assert lines[2].split() == ["2", "failed", DASH, DASH, "0:03", "a-s2-11", "seed=2"]
    assert lines[6] == "sweep in sweep: 2 finished, 0 skipped, 1 failed, 2 running"
    assert lines[7:] == ["  failed: a-s2-11: loss nan\\x1b[2J"]
    searched = closing_lines(Path("sweep"), found, search=True)
    assert [line for line in searched if line not in lines] == ["best: job 3, average 75.0: seed=3"]
    assert closing_lines(Path("sweep"), found[3:], search=True)[-1].startswith("sweep in")
    zero = closing_lines(Path("sweep"), [replace(found[0], average=0.0)], search=True)
    assert "best: job 1, average 0.0: seed=1" in zero
    starts = {line.index(word) for line, word in zip(lines[1:6], ["a-s"] * 5, strict=True)}
    assert len(starts) == 1


def test_a_job_that_comes_twice_has_the_score_of_the_first(tmp_path: Path) -> None:
    """Optuna may ask for the same values again; a job with other settings is no such twin."""
    Outcome(0, "a", "size=8", "finished", "", 0.5, 0.25).write(tmp_path, "start")

    def score(number: int, settings: str) -> tuple[float | None, Outcome]:
        job = Job(number, tmp_path / "a", "start", settings, Plan(), side_by_side=False)
        found = run_job(job, lambda: made_config[0], lambda *_: pytest.fail("it was run"))
        return found, outcomes(tmp_path, "start")[number]

    made_config = [settings("task=[rte]")]
    assert score(1, "size=8")[0] == 0.5
    recorded(tmp_path / "a", settings("task=[rte]", "learner.size=8"), "complete")
    found, outcome = score(2, "size=16")
    assert (found, outcome.outcome) == (None, "failed")


@pytest.mark.parametrize("error", [RuntimeError("no srun\nhere"), ValueError("no trials")])
def test_what_a_sweeper_or_launcher_cannot_do_is_one_line(error: Exception) -> None:
    line = CommandLine(["-m", "hydra/launcher=submitit_slurm"])
    named = r"with hydra/sweeper=basic, hydra/launcher=submitit_slurm: .*Error: no [a-z ]+$"
    with pytest.raises(UserError, match=named), of_plugins(line):
        raise error
    with pytest.raises(type(error), match="no "), of_plugins(CommandLine([])):
        raise error


def test_a_folder_that_hydra_cannot_make_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made, line = tmp_path / "file/job", CommandLine(["-m"])
    with (
        pytest.raises(UserError, match="file/job: Not a directory; choose other"),
        of_plugins(line),
    ):
        made.mkdir()
    with pytest.raises(FileNotFoundError), of_plugins(line):  # a sweep that vanished
        (tmp_path / "gone/job/file").touch()
    full = OSError(errno.ENOSPC, "No space left", "x")
    with pytest.raises(OSError, match="No space left"), of_plugins(line):
        raise full


@pytest.mark.parametrize(
    ("gpus", "asked", "devices"),
    [
        (2, "auto", ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]),
        (3, "auto", ["cuda:0", "cuda:1", "cuda:2", "cuda:0"]),
        (1, "auto", ["auto"] * 4),
        (0, "auto", ["auto"] * 4),
        (2, "cpu", ["cpu"] * 4),
        (2, "cuda:1", ["cuda:1"] * 4),
    ],
)
def test_jobs_take_turns_at_the_gpus(
    monkeypatch: pytest.MonkeyPatch, gpus: int, asked: str, devices: list[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = replace(settings("task=[rte]"), device=asked)
    assert [on_its_gpu(config, number).device for number in range(4)] == devices


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (["task=[sst2,rte]"], ["task=[rte]"], "task was sst2, rte; now rte"),
        (["task=[sst2,rte]"], ["task=[rte,sst2]"], "task was sst2, rte; now rte, sst2"),
        (["task=[rte]"], ["task=[rte]", "learner.size=8"], "learner.size was 64, now 8"),
        (["task=[rte]"], ["task=[rte]", "learner=frozen"], "learner.name was adapter, now frozen"),
        (["task=[rte]"], ["task=[rte]", "limits.train=5"], "limits.train was null, now 5"),
        (["task=[rte]"], ["task=[rte]", "device=cpu"], None),
    ],
)
def test_a_difference_is_told_in_short(old: list[str], new: list[str], told: str | None) -> None:
    configs = [settings(*given) for given in (old, new)]
    values = [deciding_values(as_values(c), c.learner.name) for c in configs]
    assert first_difference(*values) == told
