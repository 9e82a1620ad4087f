"""The closing words of a run, from its record."""

import io
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

from rich import box
from rich.console import Console
from rich.table import Table

from stream.formatting import clock, count, data_label, percent, stream_title, visible
from stream.record.method_name import method_name
from stream.record.run_record import RunRecord
from stream.report.many import is_many

WIDTH = 120
ROOM = 44  # characters of a line of names, so that the table fits into 80 columns


def memory_line(record: RunRecord) -> str:
    """Say how much of the memory is perfect: digests of the last row against the diagonal."""
    memory = record.memory
    if not memory.tasks_checked:
        return "memory: nothing to check, the only task has no earlier one"
    kind = "perfect memory" if memory.promised else "memory"
    return f"{kind}: {memory.tasks_identical} of {memory.tasks_checked} earlier tasks bit-identical"


def told_unlearned(record: RunRecord) -> str:
    """Say of how many tasks, and of which, all texts get one answer; empty where of none."""
    unlearned = record.unlearned
    if not unlearned:
        return ""
    titles = ", ".join(record.titles[place] for place in unlearned)
    told = f"{count(len(unlearned), 'task')}: {titles}"
    return textwrap.shorten(told, ROOM, placeholder=" …")


def as_text(table: Table) -> str:
    """Return a table as plain text, as wide as it needs."""
    text = io.StringIO()
    Console(file=text, width=WIDTH, no_color=True, force_jupyter=False).print(table)
    return text.getvalue()


def closing_table(record: RunRecord) -> Table:
    """Return the table that ends a run; it fits into 80 columns."""
    metrics, ledger, timing = record.metrics, record.ledger, record.timing
    table = Table(
        title=f"{visible(method_name(record), 80)} on {stream_title(record.stream)}, "
        f"{data_label(record.source)}",
        box=box.SIMPLE,
        show_header=False,
        title_justify="left",
    )
    trained = fmean(row.trained_parameters for row in ledger.tasks)
    fraction = fmean(row.trained_fraction for row in ledger.tasks)
    of_layers = fmean(row.trained_fraction_of_layers for row in ledger.tasks)
    table.add_row("average score at the end", percent(metrics["average_score"]))
    table.add_row("score right after learning", percent(metrics["learning_score"]))
    table.add_row("forgetting", percent(metrics["forgetting"]))
    if unlearned := told_unlearned(record):
        table.add_row("one answer for all texts", unlearned)
    if record.scenario == "shared_head":
        table.add_row("accuracy over all classes seen", percent(metrics["seen_class_accuracy"]))
        average = percent(metrics["average_seen_class_accuracy"])
        table.add_row("  mean over the stream", average)
    for name, value in (*_inferred(record), *_asked_for(record)):
        table.add_row(name, value)
    table.add_row("parameters trained per task", f"{trained:,.0f}")
    table.add_row("  of the encoder", f"{percent(fraction)}%")
    table.add_row("  of its layers", f"{percent(of_layers)}%")
    table.add_row("parameters stored in all", f"{ledger.total_multiple:.2f} x the encoder")
    last = ledger.tasks[-1]
    if last.buffer_examples:
        size = last.buffer_bytes / 2**20
        table.add_row("examples remembered", f"{last.buffer_examples:,} ({size:.1f} MiB)")
    if last.router_bytes:
        size = last.router_bytes / 2**20
        table.add_row("numbers the router stores", f"{last.router_parameters:,} ({size:.1f} MiB)")
    scoring = timing.evaluate_s + timing.baseline_s
    table.add_row("time", f"{clock(timing.train_s)} learning, {clock(scoring)} scoring")
    return table


def _inferred(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield what comes of it when the task of a text is inferred, and what that costs."""
    if record.routing is None:
        return
    metrics = record.metrics
    yield "with inferred tasks", f"{percent(metrics['routed_average_score'])} at the end"
    yield "  forgetting", percent(metrics["routed_forgetting"])
    yield "  texts given to their task", f"{percent(metrics['routing_accuracy'])}%"
    passes, seconds = routing_cost(record)
    yield "  router", f"{record.routing.kind}, {clock(seconds)} in all"
    yield "  forward passes a text", str(passes)


def routing_cost(record: RunRecord) -> tuple[int, float]:
    """Return (passes of serving a text at the end, seconds of learning routes and of routing)."""
    routed = [c.routed for row in record.cells for c in row if c is not None and c.routed]
    learned = [] if record.routing is None else record.routing.learn_s
    seconds = sum(cell.seconds for cell in routed) + sum(learned)
    return (routed[-1].passes if routed else 0), seconds


def _asked_for(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield what settings asked for: unseen tasks, probes, operations, a task's other metrics."""
    metrics = record.metrics
    transfer = metrics.get("fwt")
    if record.config["evaluation"]["unseen"]:
        why = "" if transfer is not None else " (needs two tasks, evaluation.baseline)"
        yield "forward transfer", f"{percent(transfer)}{why}"
    if record.probe is not None:
        lowest = metrics.get("min_acc")
        points = count(len(record.probe.points), "measurement")
        yield "lowest score since learned", f"{percent(lowest)} (min-ACC, {points} by the probe)"
    if record.linear_probe is not None:
        lost, won = metrics.get("representation_forgetting"), metrics.get("head_misalignment")
        yield "forgotten by the encoder", f"{percent(lost)} (linear probes)"
        yield "to be won by new heads", f"{percent(won)} (linear probes)"
    yield from _other_metrics(record)
    if record.flops is not None:
        total, again = sum(record.flops.train), metrics.get("ce")
        efficiency = "" if again is None else f", efficiency (CE) {again:.2f}"
        yield "operations of learning", f"{total / 1e9:,.1f} GFLOP{efficiency}"


def _other_metrics(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield each metric that some tasks have beside their first one, with the last scores."""
    found: defaultdict[str, list[tuple[str, float | None]]] = defaultdict(list)
    last = record.cells[record.score_matrix.rows_done() - 1]
    for title, cell in zip(record.titles, last, strict=True):
        for name, value in ((cell and cell.more) or {}).items():
            found[name].append((title, value))
    for name, scores in found.items():
        told = ", ".join(f"{title} {percent(score)}" for title, score in scores)
        if is_many(len(scores)):
            known = [score for _, score in scores if score is not None]
            mean = percent(fmean(known) if known else None)
            told = f"{mean} on average, of {len(known):,} tasks"
        yield f"by {name}".replace("_", " "), told
