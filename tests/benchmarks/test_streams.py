"""The benchmark of the field's streams: its plan, its search, its tables."""

from pathlib import Path

import msgspec
import pytest

from benchmarks.lines import append_line
from benchmarks.streams.plan import ALONE, ENCODERS, METHODS, ORDERS, Job, jobs
from benchmarks.streams.runs import StreamRun, best_values, beyond, search_job
from benchmarks.streams.table import TABLES, Runs, fill
from stream.config.run import RunConfig
from stream.run.settings import compose_settings

ROOT = Path(__file__).parent.parent.parent
DOCUMENT, RESULTS = ROOT / "docs/streams.md", ROOT / "results/streams"


def a_run(job: Job, seed: int, final: dict[str, float], **changes: object) -> StreamRun:
    """A run whose scores are given."""
    scores = list(final.values())
    average = sum(scores) / len(scores)
    made = StreamRun(
        encoder=job.encoder,
        scenario=job.scenario,
        stream=job.stream,
        order=job.order,
        method=job.method,
        seed=seed,
        value=0.001,
        tasks=list(final),
        learned=[score + 0.1 for score in scores],
        final=list(scores),
        majority=[0.2] * len(scores),
        metrics={"average_score": average, "forgetting": 0.1},
        steps=10,
        train_s=1.0,
        evaluate_s=1.0,
        total_multiple=1.5,
        identical=(0, 1),
        command="",
        machine="",
    )
    return msgspec.structs.replace(made, **changes)


def composed(job: Job, *, on: str | None = None) -> RunConfig:
    """What a job of the plan runs; on other tasks, where those do not matter."""
    key = METHODS[job.method].key
    tuned = [f"{key}=0.001"] if METHODS[job.method].values else []
    settings = job.settings
    if on:
        settings = [on, *(text for text in settings if not text.startswith(("stream=", "order=")))]
    config, _ = compose_settings([*settings, *tuned, "data.root=here", "seed=1"])
    assert config.scenario == job.scenario.partition(":")[0]
    return config


def test_every_learner_stream_and_scenario_of_the_plan_composes() -> None:
    planned = list(jobs())
    shown = set()
    for job in {job.stream: job for job in reversed(planned)}.values():
        config = composed(job)
        assert config.stream_name == job.stream
        orders = {other.order for other in planned if other.stream == job.stream}
        assert orders <= {"given", *config.stream.orders}
        shown.add((job.scenario, job.method))
    for job in {(job.scenario, job.method): job for job in planned}.values():
        if job.stream != "houlsby26":
            assert f"order={job.order}" in job.settings
        if (job.scenario, job.method) not in shown:
            composed(job, on="task=[sst2,ag_news]")


def test_the_plan_has_every_order_and_encoder_for_what_depends_on_them() -> None:
    planned = set(jobs())
    for encoder in ENCODERS:
        for stream in ("cl5", "cl4", "long15"):
            for order in ORDERS[stream]:
                assert Job(encoder, "known", stream, order, "replay") in planned
        for method in ALONE:
            assert Job(encoder, "known", "long15", "published_4", method) in planned


def test_a_search_goes_on_beyond_an_end_and_stops() -> None:
    assert beyond({1.0: 0.7, 2.0: 0.6, 4.0: 0.5}, 5) == [0.5]
    assert beyond({1.0: 0.5, 2.0: 0.6, 4.0: 0.7}, 5) == [8.0]
    assert beyond({1.0: 0.5, 2.0: 0.7, 4.0: 0.6}, 5) == []
    assert beyond({1.0: 0.7, 2.0: 0.6, 4.0: 0.5}, 3) == []


def test_the_value_of_the_best_validation_score_is_run(tmp_path: Path) -> None:
    path = tmp_path / "tune.jsonl"
    for value, score in ((0.1, 0.5), (0.2, 0.7), (0.4, 0.7)):
        found = a_run(search_job("minilm", "lora"), 0, {"sst2": score}, value=value)
        append_line(path, found)
    assert best_values(path) == {("minilm", "lora"): 0.2}  # of equal ones the least


def test_tables_are_the_means_of_the_runs(tmp_path: Path) -> None:
    """By hand: an isolated method's score on a stream is the mean of that stream's tasks."""
    out = tmp_path / "runs.jsonl"
    alone = Job("minilm", "known", "long15", "published_4", "adapter")
    for seed, score in ((1, 0.8), (2, 0.9)):
        append_line(out, a_run(alone, seed, {"sst2": 0.1, "ag_news": score, "dbpedia_14": 0.5}))
    for number, order in enumerate(ORDERS["cl5"]):
        job = Job("minilm", "known", "cl5", order, "finetune")
        for seed in (1, 2):
            scores = {"ag_news": 0.1 * number, "dbpedia_14": 0.1 * seed}
            append_line(out, a_run(job, seed, scores))
    lines = TABLES["cl5_minilm"](Runs.of(tmp_path)).splitlines()
    adapter = next(line for line in lines if "`adapter`" in line)
    assert "| the same |" in adapter
    assert "67.5" in adapter  # (0.65 + 0.70) / 2
    finetune = [cell.strip() for cell in next(x for x in lines if "`finetune`" in x).split("|")]
    assert finetune[2:6] == ["7.5", "12.5", "17.5", "22.5"]
    assert finetune[6].startswith("15.0")
    assert finetune[7] == "10.0"
    assert any("majority answer" in line and "20.0" in line for line in lines)


@pytest.mark.skipif(not RESULTS.exists(), reason="no records of the streams")
def test_the_document_holds_the_tables_of_the_records(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (copy := tmp_path / "copy.md").write_text(text, encoding="utf-8")
    fill(copy, Runs.of(RESULTS))
    assert copy.read_text(encoding="utf-8") == text
