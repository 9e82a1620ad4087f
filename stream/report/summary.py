"""The closing words of a run, from the values of its results.json."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from stream.formatting import data_label, percent


def memory_line(results: Mapping[str, Any]) -> str:
    """Say how much of the memory is perfect: digests of the last row against the diagonal."""
    memory = results["memory"]
    kind = "perfect memory" if memory["promised"] else "memory"
    return (
        f"{kind}: {memory['tasks_identical']} of {memory['tasks_checked']} earlier tasks "
        "bit-identical"
    )


def closing_table(results: Mapping[str, Any]) -> Table:
    """Return the table that ends a run."""
    metrics, ledger, timing = results["metrics"], results["ledger"], results["timing"]
    table = Table(
        title=f"{results['learner']} on {results['stream']}, {data_label(results['source'])}",
        box=box.SIMPLE,
        show_header=False,
        title_justify="left",
    )
    trained = [row["trained_parameters"] for row in ledger["tasks"]]
    fractions = [row["trained_fraction"] for row in ledger["tasks"]]
    layers = [row["trained_fraction_of_layers"] for row in ledger["tasks"]]
    mean = sum(trained) / len(trained)
    table.add_row("average score at the end", percent(metrics["average_score"]))
    table.add_row("score right after learning", percent(metrics["learning_score"]))
    table.add_row("forgetting", percent(metrics["forgetting"]))
    table.add_row(
        "parameters trained a task",
        f"{mean:,.0f} ({percent(sum(fractions) / len(fractions))}% of the encoder, "
        f"{percent(sum(layers) / len(layers))}% of its layers)",
    )
    table.add_row("parameters stored in all", f"{ledger['total_multiple']:.2f} x the encoder")
    remembered = ledger["tasks"][-1]["buffer_examples"]
    if remembered:
        size = ledger["tasks"][-1]["buffer_bytes"] / 2**20
        table.add_row("examples remembered", f"{remembered:,} ({size:.1f} MiB)")
    table.add_row(
        "time",
        f"{timing['train_s']:.0f} s learning, "
        f"{timing['evaluate_s'] + timing['baseline_s']:.0f} s scoring",
    )
    return table
