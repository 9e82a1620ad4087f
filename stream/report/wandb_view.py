"""What Weights & Biases shows of a run: names, settings to filter by, and few charts.

Charts, by the first part of their keys:

- ``score/TASK`` and ``forgetting/TASK`` over ``task_index``, the number of tasks learned: the
  task's score, and its best earlier score minus that (Chaudhry et al. 2018, eq. 3);
- ``summary/``, over the same axis: averages over the tasks so far, parameters, seconds;
- ``train/loss`` and ``train/lr`` over ``train/step``, the steps since the stream began: the mean
  over up to `POINTS` equal stretches of each task, and the learning rate there;
- ``probe/TASK`` over ``train/step``, with ``probe.every``: scores within tasks.

At the end also the matrix and `forgetting_rows` as tables, `score_lines` and `change_lines` as
charts of lines, and the run's figures as images (``figures/NAME``). The table of forgetting has the
learner in each row, so that the tables of several runs make a map of learners and tasks.

T tasks. Everything else that is known of a run is in its config (settings) and summary (results).
"""

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from stream.config.run import SCORE_NEUTRAL
from stream.metrics import Evidence, summarize
from stream.metrics.changes import change_since_learned
from stream.metrics.retention import forgetting_by_task
from stream.record.method_name import chosen_learner
from stream.record.run_record import RunRecord

AXES = {
    "score/*": "task_index",
    "forgetting/*": "task_index",
    "summary/*": "task_index",
    "train/*": "train/step",
    "probe/*": "train/step",
}
"""Charts, and what they are drawn over."""
NOTES = """\
What the charts show:

- `summary/`: after each task, over `task_index` (the number of tasks learned): averages over the \
tasks so far (`average_score`; `learning_score` right after learning; `forgetting`, Chaudhry et \
al. 2018), parameters (`total_multiple`: of all tasks together, as multiples of the encoder), \
seconds of learning and of scoring; where tasks are inferred, also `routed_average_score`, \
`routed_forgetting` and `routing_accuracy`.
- `score/TASK`, `forgetting/TASK`: of one task; its best earlier score minus the present one.
- `train/loss`, `train/lr`: over `train/step`, the steps since the stream began.
- `probe/TASK`: scores within tasks, if `probe.every` asks for them.

Scores are fractions. Filter and group by `method`, `learner.*`, `seed`, `stream`, `source`.
"""
"""The notes of a run unless others are given."""
POINTS = 100
NAME_LENGTH, TAG_LENGTH = 120, 64  # W&B refuses more than 128, and 64
SAID = ("learner", "seed", "resume", "tracking", "sweep")  # overrides that a name need not repeat


def config_values(record: RunRecord) -> dict[str, Any]:
    """Return the settings by which runs are filtered, grouped and compared.

    Those of the run, with the learner's name among its own, and the tasks as names. The name is in
    ``method`` too: W&B keeps what a sweep of its own chose, so that a sweep over ``learner`` leaves
    no more of ``learner`` than the name.
    """
    settings = {key: value for key, value in record.config.items() if key != "task"}
    return settings | {
        "learner": {"name": record.learner, **record.config["learner"]},
        "method": record.learner,
        "stream": record.stream,
        "tasks": record.order,
        "source": record.source,
        "data_hash": record.data.hash,
    }


def run_name(record: RunRecord) -> str:
    """Return the name of a run: learner or preset, seed, and what else the command line said."""
    given = [text.lstrip("+") for text in record.overrides or ()]
    said = [
        text.removeprefix("learner.")
        for text in given
        if text.partition("=")[0].partition(".")[0] not in SAID or text.startswith("learner.")
    ]
    return " ".join((f"{chosen_learner(record)}-s{record.seed}", *said))[:NAME_LENGTH]


def group_name(record: RunRecord) -> str:
    """Return the group of a run: runs whose scores differ by nothing but their seed share it.

    So W&B's group page shows mean and spread over seeds. The last letters are a digest of all
    other settings that may change a score.
    """
    apart = (*SCORE_NEUTRAL, "seed", "count_flops")
    settings = {key: value for key, value in record.config.items() if key not in apart}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    return "/".join((record.stream, record.learner, record.backbone, record.source, digest))


def tag_names(record: RunRecord) -> list[str]:
    """Return the tags of a run: its choices."""
    preset = record.config.get("experiment")
    choices = (record.learner, record.stream, record.backbone, f"data:{record.source}", preset)
    return [str(choice)[:TAG_LENGTH] for choice in choices if choice is not None]


def points(record: RunRecord, index: int) -> Iterator[dict[str, float]]:
    """Yield what is logged after task ``index`` (from 0), a dictionary per point, in order."""
    before = sum(record.timing.by_task.steps[:index])
    yield from _learning(record, index, before)
    yield from _probed(record, index, before)
    yield {"task_index": index + 1, **_row(as_of(record, index), index)}


def final_values(record: RunRecord) -> dict[str, Any]:
    """Return the run's summary: all metrics by name, baseline by task, memory."""
    metrics = {name: value for name, value in record.metrics.items() if value is not None}
    baseline = dict(zip(record.order, record.baseline or (), strict=False))
    memory = msgspec.structs.asdict(record.memory)
    return metrics | {"baseline": baseline, "data": record.source, "memory": memory}


FORGETTING_COLUMNS = ("learner", "seed", "number", "task", "learned", "end", "forgetting", "data")


def forgetting_rows(record: RunRecord) -> list[list[Any]]:
    """Return `FORGETTING_COLUMNS` of every task that can have been forgotten; fractions.

    Forgetting is the best earlier score minus that at the end (Chaudhry et al. 2018, eq. 3), so
    the task learned last has no row.
    """
    scores, drops = record.scores, forgetting_by_task(record.scores).tolist()
    last = scores[len(drops)] if drops else []
    return [
        [record.learner, record.seed, n + 1, name, scores[n, n], last[n], drop, record.source]
        for n, (name, drop) in enumerate(zip(record.order, drops, strict=False))
    ]


def score_lines(record: RunRecord) -> list[list[float]]:
    """Return each task's scores from when it was learned on, fractions."""
    columns = [record.scores[on:, on] for on in range(len(record.order))]
    return [column[~np.isnan(column)].tolist() for column in columns]


def change_lines(record: RunRecord) -> list[list[float]]:
    """Return each task's score minus its score right after learning, from then on; fractions."""
    columns = change_since_learned(record.scores).T
    return [column[~np.isnan(column)].tolist() for column in columns]


def as_of(record: RunRecord, index: int) -> RunRecord:
    """Return the record as it was after task ``index`` (from 0), as far as rows show it."""
    rows = record.ledger.tasks[: index + 1]
    matrix = record.scores
    matrix[index + 1 :] = np.nan
    routed = record.score_matrix.routed()
    for values in routed or ():
        values[index + 1 :] = np.nan
    total = rows[-1].stored_parameters / record.ledger.base_parameters
    return msgspec.structs.replace(
        record,
        metrics=summarize(matrix, Evidence(record.baseline, routed=routed)),
        ledger=msgspec.structs.replace(record.ledger, tasks=rows, total_multiple=total),
    )


def _row(record: RunRecord, index: int) -> dict[str, float]:
    """Return scores, forgetting and the summary after task ``index``, the last of the record."""
    names, scores, ledger = record.order, record.matrix[index], record.ledger
    drops = forgetting_by_task(record.scores, index + 1)
    times, last = record.timing.by_task, ledger.tasks[index]
    shown = ["average_score", "learning_score", "forgetting"]
    if record.scenario == "shared_head":
        shown += ["seen_class_accuracy", "average_seen_class_accuracy"]
    if record.scenario == "inferred":
        shown += ["routed_average_score", "routed_forgetting", "routing_accuracy"]
    summary = {name: record.metrics[name] for name in shown} | {
        "trained_parameters": last.trained_parameters,
        "stored_parameters": last.stored_parameters,
        "total_multiple": ledger.total_multiple,
        "learning_seconds": times.train_s[index],
        "scoring_seconds": times.evaluate_s[index],
    }
    values = {f"score/{name}": score for name, score in zip(names, scores, strict=True)}
    values |= {f"forgetting/{name}": float(d) for name, d in zip(names, drops, strict=False)}
    values |= {f"summary/{name}": value for name, value in summary.items()}
    return {name: value for name, value in values.items() if value is not None}


def _learning(record: RunRecord, index: int, before: int) -> Iterator[dict[str, float]]:
    """Yield the losses and the learning rate of a task; ``before`` steps were made before it."""
    from stream.training.schedule import warmup_then_linear  # with torch, for trackers that run

    losses = record.losses.get(record.order[index], [])
    warmup = record.config["training"]["warmup"]
    stretch = math.ceil(len(losses) / POINTS)
    for start in range(0, len(losses), max(stretch, 1)):
        part = losses[start : start + stretch]
        last = start + len(part) - 1
        rate = record.settings_of(record.order[index])["lr"] * warmup_then_linear(
            last, len(losses), warmup
        )
        loss = sum(part) / len(part)
        yield {"train/step": before + last + 1, "train/loss": loss, "train/lr": rate}


def _probed(record: RunRecord, index: int, before: int) -> Iterator[dict[str, float]]:
    """Yield the scores that were measured within a task."""
    for point in record.probe.points if record.probe is not None else ():
        if point.task == index:
            scores = zip(record.order, point.scores, strict=False)
            yield {"train/step": before + point.step, **{f"probe/{n}": s for n, s in scores}}
