"""What a command line means: one line for what cannot be meant, and what each way to type does.

Rows without a composition cost nothing; those with one take a tenth of a second each.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra.core.config_store import ConfigStore
from hydra.errors import MissingConfigException
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.cli.resumed import with_run_folder
from stream.config.complaints import complaints
from stream.config.composition import Composition
from stream.config.names import unknown_setting
from stream.config.paths import conf_folder
from stream.config.typed import in_grammar, parse
from stream.errors import UserError
from tests.composed import compose_run
from tests.record.made_record import made_record

CONF = conf_folder()
ONE = "task=[cola]"
ODD = [
    "o'brien run",
    "in tr=x",
    "a,b",
    "[a]",
    "{a:b}",
    "1_0",
    "a$b",
    "#1",
    "a\\",
    "true",
    "ü 你",
    "a ",
]
RECORD = made_record(config={"data": {"source": "generated", "train": 48}})
TASK = "  title: T\n  kind: single\n  labels: ['a', 'b']\n  metric: accuracy\n  source: s\n"


def told(arguments: Sequence[str]) -> str:
    """The one line that a command line is refused with."""
    with pytest.raises(UserError) as caught:
        check_command_line(CONF, with_run_folder(CommandLine(arguments)))
    line = str(caught.value)
    assert "\n" not in line
    return line


# Refused before anything is composed.
REFUSED = [
    ("-m resume=RUN", "resume=RUN goes on with one run, -m starts several: leave -m out"),
    ("resume=RUN -m", "resume=RUN goes on with one run"),
    ("-m +resume=RUN", "resume=RUN goes on with one run"),
    ("-m resume=auto seed=1,2", "resume=auto goes on with one run"),
    ("hydra/launcher=joblib", "hydra/launcher=joblib has no effect without -m"),
    ("hydra/sweeper=optuna", "hydra/sweeper=optuna has no effect without -m"),
    ("hydra.sweep.dir=x", "hydra.sweep.dir=x has no effect without -m"),
    ("-m hydra.run.dir=x", "hydra.run.dir=x has no effect with -m"),
    ("-m hydra.sweeper.params.seed=1,2", "hydra.sweeper.params.seed=1,2: give what is swept by it"),
    ("-m +hydra.sweeper.params={seed:3}", "give what is swept by itself"),
    ("-m hydra.sweeper.search_space.seed.type=int", "give what is swept by itself"),
    ("~stream", "stream is needed: give stream=VALUE"),
    ("~training training.epochs=9", "~training: settings cannot be taken away"),
    ("-cd a --config-dir=b", "--config-dir is given twice (a and b); give it once"),
    ("~learner", "learner is needed: give learner=VALUE"),
    ("+learner=ewc", "+learner=ewc: there is one choice of learner; give learner=ewc"),
    ("++task=[cola]", "there is one choice of task; give task=[cola]"),
    ("+experiment=smoke", "there is one choice of experiment; give experiment=smoke"),
    ("-m sweep=s hydra.sweep.dir=x", "hydra.sweep.dir=x and sweep=NAME name the same folder"),
    ("-m sweep=a,b", "sweep=a,b: a sweep has one name"),
    ("-m hydra.mode=RUN", "hydra.mode=RUN contradicts -m"),
    ("hydra.mode=RUN seed=1,2", "several values in seed=1,2 need -m"),
    ("learner=glob(adapter_*)", "several values in learner=glob(adapter_*) need -m"),
    (
        "stream.tasks=[sst2]",
        "stream.tasks=[sst2]: stream.tasks describes the tasks that",
    ),
    ("stream.name=mine", "stream.name=mine: stream.name describes the tasks"),
    ("seed=1 seed=2", "seed is given twice (seed=1 and seed=2)"),
    ("task=[cola] task=[sst2]", "task is given twice"),
    ("seed=1 ++seed=2", "seed is given twice"),
    ("backbone=[a]", "backbone=[a]: backbone is one name, without brackets"),
    ("learner={a:1}", "learner={a:1}: learner is one name"),
    ("task=[[cola]]", "task=[[cola]]: each task is one name"),
    ("learner.lr=", "learner.lr= has no value; give learner.lr=VALUE"),
    ("cache=", "cache= has no value"),
    ("hydra.run.dir=", "hydra.run.dir= has no value"),
    ("-m resume=a,b", "resume=a,b goes on with one run"),
    ("-m learner.size=range(1,4),8", "a list of values holds no range or choice"),
    ("=5", "'=5' names no setting"),
    ("seed==5", "cannot read 'seed==5'"),
    ("--seed 1", "unknown option '--seed'."),
    ("--multirn", "unknown option '--multirn'. Did you mean '--multirun'?"),
    ("--cfg jobs", "invalid choice: 'jobs'"),
    ("-p learner", "--package has no effect without --cfg"),
    ("-cp /tmp", "--config-path would replace the program's own YAML files"),
    ("--experimental-rerun x", "--experimental-rerun reads what no run here writes"),
    ("--shell-completion x=bash", "unknown --shell-completion 'x=bash'"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_refused_at_once(line: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Composition, "of", lambda *_: pytest.fail("it was composed"))
    assert message in told(line.split())


# Refused by what is composed; with task=[cola] unless tasks or a preset are named.
COMPOSED = [
    ("hydra.searchpath=[file:///no/such]", "hydra.searchpath: no such folder: /no/such"),
    ("task=[cola,sst2,cola]", "named more than once: cola"),
    ("stream=glue9 task=[sst2]", "stream=glue9 has no effect: 'task=[...]' or the experiment"),
    (
        "experiment=smoke data=files",
        "experiment/smoke.yaml: unknown setting 'data.train'; it belongs to data=generated",
    ),
    ("experiment=fig4_sizes seed=1", "experiment=fig4_sizes sweeps learner.size: it needs -m"),
    ("hydra.output_subdir=.hydra", "hydra.output_subdir=.hydra is not possible: a run folder"),
    ("hydra/job_logging=default", "hydra/job_logging=default is not possible: it writes into"),
    ("hydra.job.chdir=true", "paths mean the folder where the command was given"),
    ("--cfg job learner.size=-3", "learner.size must be at least 1, got -3"),
    ("learner.lr=${nope}", "learner.lr: Interpolation key 'nope' not found"),
    ("+foo=1", "unknown setting 'foo'"),
    ("tracking=false", "unknown tracking 'false'. Valid: none, wandb"),
    ("learner=null", "unknown learner 'null'"),
    ("learner=1e3", "unknown learner '1e3'"),
    ("hydra/job_logging=1", "unknown hydra/job_logging '1'"),
    ("learner=EWC", "unknown learner 'EWC'. Did you mean 'ewc'?"),
    (
        "backbone=backbone_schema",
        "unknown backbone 'backbone_schema'. Valid: albert_base, ",
    ),
    ("--cfg job -p lerner.lr", "unknown --package 'lerner.lr'. Did you mean 'learner'?"),
    ("hydra.callbacks.sweep=null", "hydra.callbacks.sweep is the program's own"),
    ("hydra.callbacks.sweep._target_=other", "hydra.callbacks.sweep is the program's own"),
    ("device=gpu", "unknown device 'gpu'. Did you mean 'cpu'? Valid: auto, cpu, cuda, cuda:0"),
    ("device=cuda:", "unknown device 'cuda:'"),
    ("device=mps", "unknown device 'mps'"),
    ("device=cuda:00", "unknown device 'cuda:00'"),
    ("-m device=cpu,cuda:x", "unknown device 'cuda:x'"),
    ("-cn foo", "unknown --config-name 'foo'. Valid: config"),
    ("-m learner=glob(zz*)", "learner=glob(zz*) fits none of: adapter, "),
    ("-m learner.lr=interval(1e-4,1e-2)", "needs a sweeper that samples (hydra/sweeper=optuna"),
    ("-m hydra/sweeper=ax", "unknown hydra/sweeper 'ax'. Valid: basic"),
    ("-m hydra.job.name=a,b", "Hydra's own settings cannot be swept"),
    ("-m learner=adapter,replay learner.size=64,8", "learner.size=8 has no effect"),
    ("--info defaults learner=adaptor", "unknown learner 'adaptor'"),
]


@pytest.mark.parametrize(("line", "message"), COMPOSED, ids=[line for line, _ in COMPOSED])
def test_refused_when_composed(line: str, message: str) -> None:
    arguments = line.split()
    chosen = re.search(r"(^| )(task|stream|experiment)=", line)
    assert message in told(arguments if chosen else [*arguments, ONE])


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("batch_size", ". Did you mean 'training.batch_size'? "),
        ("size", ". Did you mean 'learner.size'? "),
        ("lr", ". Did you mean 'learner.lr'? "),
        ("LR", ". Did you mean 'learner.lr'? "),
        ("epochs", ". Did you mean 'training.epochs'? "),
        ("train.epochs", ". Did you mean 'training.epochs'? "),
        ("training.batchsize", ". Did you mean 'training.batch_size'? "),
        ("train", ". Did you mean 'limits.train' or 'data.train'? "),
        ("prefix", ". Did you mean 'learner.prefix' (of learner=joint, pals)? "),
        ("learner.temperature", "; it belongs to learner=lwf. "),
        ("Data.Root", ". Did you mean 'data.root' (of data=files)? "),
        ("zzzzzz", ". Valid"),
    ],
)
def test_an_unknown_setting_names_what_was_meant(key: str, hint: str) -> None:
    chosen = {"learner": "adapter", "data": "generated", "tracking": "none"}
    assert f"unknown setting {key!r}{hint}" in str(unknown_setting(key, ["seed"], chosen))


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("resume='my runs/a'", "my runs/a"),  # in Hydra's quotes
        ("cache=runs/a-1.b", "runs/a-1.b"),
        ("cache=null", None),
        ("hydra.run.dir=runs/${seed}", "runs/${seed}"),
        ("resume=${a}", "\\${a}"),  # as OmegaConf escapes it
        ("task.my.files.folder=a,b", "a,b"),
        ("tracking=off", "off"),
        ("learner=007", "007"),
        ("task=[2024,true,cola]", ["2024", "true", "cola"]),
        ("sweep=2024_11_30", "2024_11_30"),
        ("backbone.revision=7e12345", "7e12345"),
        ("tracking.notes=two: a, b", "two: a, b"),
        ("seed=1", 1),
        ("training.warmup=.5", 0.5),
    ],
)
def test_what_was_typed_is_read(typed: str, read: Any) -> None:
    (found,) = parse([in_grammar(typed, multirun=False)])
    assert found.value() == read


def test_several_folders_are_several_runs_only_with_m() -> None:
    assert in_grammar("data.root=a,b", multirun=True) == "data.root=a,b"
    assert in_grammar("learner=ewc,1", multirun=True) == "learner=ewc,'1'"
    assert CommandLine(["hydra.mode=MULTIRUN", "seed=1,2"]).multirun
    assert CommandLine(["--seed=1", "--cfg=job", "--config-dir=x"]).flags.overrides == ["seed=1"]


@given(name=st.text("ab'\"\\ ,[]{}()=$#:;~+*?!ü你%@-_.0/\n", min_size=1, max_size=9))
@example("${a}\\${b}'")
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_folder_can_be_named(name: str) -> None:
    """And Hydra hands it on to the jobs of a sweep as it is."""
    in_quotes = name.strip()[:1] in ("'", '"') and name.strip()[-1:] == name.strip()[:1]
    if not in_quotes:
        (once,) = parse([in_grammar(f"resume={name}", multirun=False)])
        (again,) = parse([f"resume={once.get_value_element_as_str()}"])
        assert OmegaConf.create({"a": again.value()}).a == name


def test_a_run_goes_on_in_a_folder_of_any_name(tmp_path: Path) -> None:
    for name in ["/".join(ODD), "${a} b"]:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        RECORD.write(folder)
        line = with_run_folder(CommandLine([f"resume={folder}", ONE]))
        config, run_folder = compose_run(CONF, line.settings())
        assert (config.resume, run_folder) == (str(folder), folder)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("data.root=x", " has no data.root; leave data.root=x out"),
        ("data.train=49", ": data.train was 48, now 49; leave it out"),
        ("hydra.run.dir=elsewhere", "hydra.run.dir=elsewhere has no effect: resume="),
    ],
)
def test_a_run_that_goes_on_keeps_its_choices(setting: str, message: str, tmp_path: Path) -> None:
    RECORD.write(tmp_path)
    assert message in told([f"resume={tmp_path}", setting])
    kept = with_run_folder(CommandLine([f"resume={tmp_path}", "data.train=48", "seed=3"]))
    assert [o.key_or_group for o in kept.overrides] == ["resume", "seed", "hydra.run.dir"]


def test_auto_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert with_run_folder(CommandLine(["resume=auto", ONE])).value("hydra.run.dir") is None
    said = "resume=auto: runs/ has no unfinished run of these settings; a new one starts\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"other:\n{TASK}", "has 'other' at its top; it must have one key, 'mine'"),
        ("", "is empty; it must have one key, 'mine'"),
        ("# a comment\n", "is empty"),
        ("[a]", "is a list"),
        (TASK.replace("  ", ""), "has 'title', 'kind', 'labels', 'metric', 'source' at its top"),
        (f"mine:\n{TASK}seed: 1\n", "has 'mine', 'seed' at its top"),
        (f"# @package _global_\nmine:\n{TASK}", "must not have a line '# @package'"),
        ("mine:\n", "has no settings below 'mine'"),
        ("mine: [a]\n", "has no settings below 'mine'"),
        (f"mine:\n{TASK}  label: x\n", "unknown setting 'label'. Did you mean 'labels'?"),
        (f"mine:\n{TASK}  version: x\n", "version: must be a whole number, got 'x'"),
        (f"mine:\n{TASK}  files: x\n", "mine.yaml: "),
        ("mine:\n  title: T\n", "task 'mine' needs kind: write it in its YAML"),
        ("mine: [", "a YAML file cannot be read: "),
        (f"# caf\xe9\nmine:\n{TASK}", "mine.yaml is not UTF-8: "),
    ],
)
def test_a_task_is_what_its_file_is_called(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.yaml").write_text(text, encoding="latin-1")
    assert message in told(["-cd", str(tmp_path), "task=[cola,mine]"])


@pytest.mark.parametrize(
    ("choice", "text", "message"),
    [
        ("learner", "defaults: adapter\n", "mine.yaml: Invalid defaults list in 'learner/mine'"),
        ("learner", "defaults: [5]\n", "mine.yaml: Unsupported type in defaults"),
        ("learner", "defaults: [mine, _self_]\n", "build on each other in a circle"),
        ("data", "train: 64\n", "the YAML of data=NAME says which data it changes"),
        (
            "learner",
            "defaults: [adapter, _self_]\nsise: 8\n",
            "learner/mine.yaml: unknown setting 'learner.sise'. Did you mean 'learner.size'?",
        ),
        (
            "experiment",
            "# @package _global_\ntraining: {epochs: many}\n",
            "experiment/mine.yaml: training.epochs: must be a whole number",
        ),
        ("stream", "defaults: [cl5]\ntasks: [rte]\n", "builds on no other (defaults: cl5)"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(
    choice: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / choice).mkdir()
    (tmp_path / choice / "mine.yaml").write_text(text)
    assert message in told(
        ["-cd", str(tmp_path), f"{choice}=mine", *([ONE] * (choice != "stream"))]
    )


def test_jobs_are_tried_without_being_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All combinations of plain values, and a composition only for each choice."""
    composed = []
    compose = Composition.of

    def counted(folder: Path, overrides: Sequence[str], config_name: str) -> Composition:
        composed.append(overrides)
        return compose(folder, overrides, config_name)

    monkeypatch.setattr(Composition, "of", counted)
    swept = ["learner=adapter,ewc", "seed=range(0,25)", "learner.lr=1e-3,2e-3"]
    check_command_line(CONF, CommandLine(["-m", *swept, ONE]))
    assert len(composed) == 3  # the first job, and both learners
    last = ["order=given,random", "order_seed=null,3"]
    assert "order_seed=3 has no effect with order=given" in told(["-m", *last, ONE])


def test_what_is_set_in_a_composition_is_what_is_composed() -> None:
    base = Composition.of(CONF, [ONE])
    texts = ["learner.size=8", "seed=3", "limits.train=null", "++device=cpu", "cache='a b'"]
    assert base.with_values(parse(texts)) == compose_run(CONF, [*texts, ONE])[0]


def test_another_sweeper_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Optuna does: the ends of an interval are tried, and the best score is the highest."""
    monkeypatch.setattr(ConfigStore.instance(), "repo", {**ConfigStore.instance().repo})
    ConfigStore.instance().repo["hydra"] = {**ConfigStore.instance().repo["hydra"]}
    sweepers = dict(ConfigStore.instance().repo["hydra"]["sweeper"])
    ConfigStore.instance().repo["hydra"]["sweeper"] = sweepers
    node = {"_target_": "tests.Sweeper", "direction": "minimize", "params": None}
    ConfigStore.instance().store("stand_in", node, "hydra/sweeper", "hydra.sweeper", "test")
    given = ["-m", "hydra/sweeper=stand_in", ONE]
    best = "hydra.sweeper.direction=maximize"
    check_command_line(CONF, CommandLine([*given, "learner.lr=interval(1e-4,1e-2)", best]))
    rate = "learner.lr=tag(log,interval(-1.0,1e-2))"
    assert "learner.lr must be positive" in told([*given, rate, best])
    assert "looks for the lowest average score" in told([*given, "learner.lr=interval(1e-4,1e-2)"])
    assert "takes glob(...)" in told([*given, "learner=glob(adapter_*)", best])
    # The end of a range is in it, other than where Hydra makes the jobs.
    beyond = [*given, best, "training.warmup=range(0,1,0.25)"]
    assert "training.warmup" in told(beyond)
    check_command_line(CONF, CommandLine([*beyond[:-1], "training.warmup=range(0,1,0.3)"]))
    check_command_line(CONF, CommandLine(["-m", ONE, "training.warmup=range(0,1,0.25)"]))


@pytest.mark.parametrize(
    ("choice", "extra"),
    [
        ("hydra/sweeper=optuna", "optuna"),
        ("hydra/launcher=joblib", "sweep"),
        ("hydra/launcher=submitit_slurm", "slurm"),
    ],
)
def test_a_choice_of_an_optional_package_says_how_to_install_it(choice: str, extra: str) -> None:
    missing = MissingConfigException("no such file", choice.replace("=", "/"))
    with pytest.raises(UserError, match=re.escape(f"pip install '.[{extra}]'")), complaints():
        raise missing
    extras = tomllib.loads((CONF.resolve().parent / "pyproject.toml").read_text())["project"]
    assert extra in extras["optional-dependencies"]


def test_help_is_a_page_of_settings_that_exist() -> None:
    page = str(Composition.of(CONF, [ONE]).hydra.help.template)
    groups = 7
    assert len(page.splitlines()) + groups < 60
    assert max(map(len, page.splitlines())) <= 100
    shown = re.findall(r"\b((?:[a-z_]+\.)+[a-z_]+|seed|order|order_seed|device|sweep)=", page)
    assert len(shown) > 10
    for name in shown:
        error = str(unknown_setting(f"{name}s", [], {"learner": "adapter", "data": "files"}))
        assert f"Did you mean {name!r}? " in error
