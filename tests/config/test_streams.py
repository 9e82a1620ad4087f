"""Streams: their orders as published, their tasks named once, sets cut into tasks by class."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.cli.trials import Trials
from stream.config import choices
from stream.config.compose import searched_too
from stream.config.cut import CutSpec
from stream.config.data import StreamConfig
from stream.config.parts import parts_of, whole_of
from stream.config.run import RunConfig
from stream.config.task import TaskSpec
from stream.config.typed import parse
from stream.data.build import arrange
from stream.errors import UserError
from stream.run.settings import as_values, deciding_digest, recorded_config
from tests.builders import made_spec
from tests.composed import compose_run

CONF = Path(__file__).parent.parent.parent / "conf"
FACTS = Path(__file__).parents[3] / "shared" / "data" / "streams.json"
NAMES = {  # ours -> those of the facts
    "cl5": "mbpa5",
    "cl4": "t5_4",
    "long15": "long15",
    "idbr3": "idbr3",
    "clinc150": "clinc150_domains",
    "clinc150_15x10": "clinc150_15x10",
    "banking77": "banking77_7x11",
}
NEEDS_FACTS = pytest.mark.skipif(not FACTS.exists(), reason="the facts about streams are not here")
CUT = "task=[crowdflower_emotion,rte]"  # 13 and 2 classes


def compose(*overrides: str) -> RunConfig:
    return compose_run(CONF, overrides)[0]


def ordered(stream: StreamConfig, order: str) -> list[str]:
    """The tasks of a stream in one of its orders, as a run has them."""
    tasks = [SimpleNamespace(name=name) for name in stream.tasks]
    return [task.name for task in arrange(tasks, order, None, stream.orders)]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def streams() -> dict[str, StreamConfig]:
    found = choices.streams()
    assert not found.broken
    return {name: choice.content for name, choice in found.usable.items()}


@NEEDS_FACTS
def test_orders_are_the_published_ones(streams: dict[str, StreamConfig]) -> None:
    facts = json.loads(FACTS.read_text())["streams"]
    tried = 0
    for ours, theirs in NAMES.items():
        published = facts[theirs]["orders"]
        parts = facts[theirs].get("parts", {})
        of = next(iter(parts.values()))["task"] if parts else ""
        names = {key: f"{of}_{key.removeprefix('part')}" for key in parts}
        stream = streams[ours]
        for number, order in published.items():
            name = f"published_{number}" if stream.orders else "given"
            assert ordered(stream, name) == [names.get(task, task) for task in order]
            tried += 1
        assert ordered(stream, "given") == [names.get(t, t) for t in next(iter(published.values()))]
        assert len(stream.orders) in (0, len(published))
        assert stream.shared_labels == facts[theirs]["shared_labels"]
        for paper, numbers in facts[theirs]["other_numbers"].items():
            for number, other in numbers.items():
                said = stream.other_numbers[f"published_{number}"]
                assert other in said.split()
                assert paper.split(",")[0].split()[0] in said
    assert tried == 4 + 3 + 3 + 3 + 1 + 1 + 1


@NEEDS_FACTS
def test_parts_have_the_published_labels(streams: dict[str, StreamConfig]) -> None:
    """Label by label, in order."""
    facts = json.loads(FACTS.read_text())
    for ours in ("clinc150", "clinc150_15x10", "banking77"):
        found = compose(f"stream={ours}").task
        published = facts["streams"][NAMES[ours]]["parts"].values()
        assert list(found) == streams[ours].tasks
        for spec, part in zip(found.values(), published, strict=True):
            labels = facts["tasks"][part["task"]]["labels"]
            assert spec.labels == [labels[number] for number in part["labels"]]
            assert (spec.part.of, spec.part.labels) == (part["task"], labels)


def test_an_order_of_long15_is_that_of_its_papers(streams: dict[str, StreamConfig]) -> None:
    """O-LoRA's order 5, by hand: MultiRC first, Yahoo last."""
    assert ordered(streams["long15"], "published_5") == [
        *("multirc", "boolq", "wic", "mnli_matched", "cb", "copa", "qqp", "rte", "imdb", "sst2"),
        *("dbpedia_14", "ag_news", "yelp_review_full", "amazon_review_full"),
        "yahoo_answers_topics",
    ]
    glue = ["cola", "sst2", "mrpc", "stsb", "qqp", "mnli_matched", "mnli_mismatched", "qnli", "rte"]
    assert streams["glue9"].tasks == glue == streams["houlsby26"].tasks[:9]
    assert len(streams["houlsby26"].tasks) == 26


def test_an_order_that_the_stream_lacks_is_one_line() -> None:
    with pytest.raises(UserError, match=r"unknown order 'published_9'.*random, published_1, ") as e:
        compose("stream=idbr3", "order=published_9")
    assert "\n" not in str(e.value)
    with pytest.raises(UserError, match=r"unknown order 'published_1'\. Valid: given, .*random$"):
        compose("task=[rte,sst2]", "order=published_1")
    swept = ["-m", "stream=idbr3", "order=published_1,published_4"]
    with pytest.raises(UserError, match="unknown order 'published_4'"):
        check_command_line(CONF, CommandLine(swept))


def test_a_sweep_over_orders_tries_each() -> None:
    texts = ["stream=idbr3", "order=given,published_2,published_3", "learner=adapter,frozen"]
    jobs, total = Trials(CONF, parse(texts), "config").jobs()
    assert total == 6
    assert {config.order for _, config in jobs} == {"given", "published_2", "published_3"}
    assert {config.stream_name for _, config in jobs} == {"idbr3"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name: mine\ntasks: [sst2, rte]\n", ""),
        ("name: mine\norders: {first: [sst2, rte], second: [rte, sst2]}\n", "second"),
        ("# @package _global_\nstream: {name: mine, tasks: [sst2, rte]}\nseed: 3\n", ""),
        (
            "# @package _global_\ndefaults:\n  - /task: [sst2, rte]\n"
            "stream: {name: mine, tasks: [sst2, rte]}\n",
            "",
        ),
    ],
)
def test_a_stream_of_ones_own(tmp_path: Path, text: str, named: str) -> None:
    """Tasks are named once; the form of earlier versions names them twice and stays valid."""
    (tmp_path / "stream").mkdir()
    (tmp_path / "stream" / "mine.yaml").write_text(text)
    searched = searched_too(tmp_path)
    config = compose("stream=mine", searched, *([f"order={named}"] if named else []))
    assert (list(config.task), config.stream_name) == (["sst2", "rte"], "mine")
    assert config.seed == (3 if "seed" in text else 0)
    assert choices.streams(tmp_path).usable["mine"].content.tasks == ["sst2", "rte"]
    with pytest.raises(UserError, match="stream=mine has no effect"):
        compose("stream=mine", searched, "task=[rte]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: mine\n", "mine.yaml: tasks must be a list of names"),
        ("name: mine\ntasks: sst2\n", "mine.yaml: tasks must be a list of names"),
        ("name: mine\ntasks: [sst2, rte]\norders: {a: [rte]}\n", "order 'a' must have each .*sst2"),
        ("name: mine\norders: {a: [rte, rte]}\n", "more than once: rte"),
        ("name: mine\ntasks: [rte]\ncut: {sst2: {classes: 2}}\n", "task of stream 'mine' 'sst2'"),
        ("name: mine\ntasks: [rte]\nother_numbers: {a: b}\n", "order of stream 'mine' 'a'"),
    ],
)
def test_a_stream_that_is_wrong_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "stream").mkdir()
    (tmp_path / "stream" / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match=message) as error:
        compose("stream=mine", searched_too(tmp_path))
    assert "\n" not in str(error.value)


def spec_of(num_labels: int) -> TaskSpec:
    return made_spec(num_labels)


@given(st.integers(2, 40), st.integers(2, 45), st.none() | st.integers(0, 3))
def test_cut_by_number_puts_each_class_into_one_part(labels: int, size: int, seed: int) -> None:
    spec = spec_of(labels)
    cut = CutSpec(classes=size, seed=seed)
    if labels % size == 1:
        with pytest.raises(UserError, match=r"cut leaves one to part"):
            parts_of("set", spec, cut)
        return
    parts = parts_of("set", spec, cut)
    assert list(parts) == [f"set_{n}" for n in range(1, -(-labels // size) + 1)]
    assert {len(part.labels or ()) for part in list(parts.values())[:-1]} <= {size}
    found = [label for part in parts.values() for label in part.labels or ()]
    assert sorted(found) == sorted(spec.labels or ())
    assert seed is not None or found == spec.labels
    assert all(whole_of(part) == spec for part in map(_untitled, parts.values()))


def _untitled(part: TaskSpec) -> TaskSpec:
    part.title = "made"
    return part


def test_a_random_cut_is_another_for_another_seed() -> None:
    cuts = [parts_of("set", spec_of(20), CutSpec(classes=5, seed=seed)) for seed in range(4)]
    assert len({tuple(parts["set_1"].labels or ()) for parts in cuts}) == 4
    again = parts_of("set", spec_of(20), CutSpec(classes=5, seed=3))
    assert again == cuts[3]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ({"parts": {"a": ["label 0", "labl 1"]}}, "Did you mean 'label 1'"),
        ({"parts": {"a": [0, 7]}}, "class 7; valid: 0 to 5"),
        ({"parts": {"a": [0, -1]}}, "class -1; valid"),
        ({"parts": {"a": [True, 1]}}, "names True, no label"),
        ({"parts": {"a": [0, 1], "b": [2, 1]}}, "two places: label 1"),
        ({"parts": {"a": [0]}}, "6 classes, cut leaves one to part a"),
        ({"parts": {"a": "label 0"}}, "must be lists of classes"),
        ({"parts": [[0, 1]]}, "must be lists of classes"),
        ({"parts": {}}, "must be lists of classes"),
        ({"parts": {"a": [0, 1]}, "classes": 2}, "give one of them"),
        ({"parts": {"a": [0, 1]}, "seed": 2}, "cut.seed=2 has no effect without cut.classes"),
        ({"classes": 5}, "6 classes, cut leaves one to part 2"),
        ({"classes": 1}, "cut.classes must be at least 2"),
    ],
)
def test_a_cut_that_is_wrong_is_one_line(cut: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        parts_of("set", spec_of(6), CutSpec(**cut))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("spec", "has"), [(made_spec(None), "scores"), (None, "answers")])
def test_what_has_no_classes_is_not_cut(spec: TaskSpec | None, has: str) -> None:
    span = TaskSpec(title="made", kind="span", metric="answer_f1", source="made")
    with pytest.raises(UserError, match=rf"'set' cannot be cut by class: it has {has}"):
        parts_of("set", spec or span, CutSpec(classes=2))


def test_a_cut_on_the_command_line() -> None:
    config = compose(CUT, "task.crowdflower_emotion.cut={classes: 5}")
    assert list(config.task) == [*(f"crowdflower_emotion_{n}" for n in (1, 2, 3)), "rte"]
    assert [len(spec.labels or ()) for spec in config.task.values()] == [5, 5, 3, 2]
    assert config.task["crowdflower_emotion_2"].title.endswith(" 2")
    given_parts = "task.crowdflower_emotion.cut={parts: {some: [worry, 0], rest: [1, 2]}}"
    parts = compose(CUT, given_parts).task
    assert parts["crowdflower_emotion_some"].labels == ["worry", "anger"]


def test_a_stream_that_is_cut_otherwise_is_another_one() -> None:
    config = compose("stream=clinc150", "task.clinc150.cut={classes: 50}")
    assert (list(config.task), config.stream_name) == (
        [f"clinc150_{n}" for n in (1, 2, 3)],
        "custom",
    )


def test_a_record_of_parts_is_read_again() -> None:
    config = compose(CUT, "task.crowdflower_emotion.cut.classes=5", "tracking=none")
    values = as_values(config)
    again = recorded_config(values, "adapter", "generated")
    assert as_values(again) == values
    older = json.loads(json.dumps(values))
    for spec in older["task"].values():
        del spec["cut"]
    for name in ("orders", "other_numbers", "cut", "shared_labels"):
        del older["stream"][name]
    assert deciding_digest(older) == deciding_digest(values)


@pytest.mark.parametrize("name", sorted(path.stem for path in CONF.glob("protocol/*.yaml")))
def test_a_protocol_composes_says_its_name_and_wins(name: str) -> None:
    config = compose(f"protocol={name}", "experiment=smoke")
    assert (config.protocol, config.experiment) == (name, "smoke")
    if name == "online":
        assert (config.training.epochs, config.training.min_steps) == (1, 0)
    else:
        assert config.limits.per_class == int(name.removeprefix("rows"))
    assert config.limits.eval is None
    assert config.limits.eval_per_class is None
