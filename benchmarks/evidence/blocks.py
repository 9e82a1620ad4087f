"""What stands in documents between ``<!-- evidence:NAME -->`` and ``<!-- end -->``."""

from collections.abc import Callable
from pathlib import Path

from benchmarks import markdown
from benchmarks.evidence.ablation_figures import SHOWN, picture
from benchmarks.evidence.ablation_tables import (
    ablation_claims,
    ablations,
    first_weights,
    layers,
    rates,
    sizes,
    table_2,
)
from benchmarks.evidence.again_tables import again, replaced
from benchmarks.evidence.commands import machines, runs
from benchmarks.evidence.elsewhere import more_rows, mpnet
from benchmarks.evidence.failing import failing
from benchmarks.evidence.inferred import inferred
from benchmarks.evidence.longer import longer
from benchmarks.evidence.records import Records
from benchmarks.evidence.repeats import chosen_again, repeats
from benchmarks.evidence.search_tables import at_one_rate, methods, per_task_choice, searches
from benchmarks.evidence.sentences import headline, lag, verdicts
from benchmarks.evidence.tables import (
    against_finetune,
    brief,
    claims,
    differences,
    main,
    orders,
)
from benchmarks.evidence.task_tables import failures, missing, tasks
from benchmarks.evidence.tradeoff import tradeoff

KIND = "evidence"
BLOCKS: dict[str, Callable[[Records], str]] = {
    block.__name__: block
    for block in (
        *(methods, searches, at_one_rate, per_task_choice),
        *(main, brief, differences, against_finetune, orders, claims),
        *(tasks, failures, again, missing, headline, lag, verdicts, runs),
        *(tradeoff, mpnet, more_rows, inferred, machines, repeats, replaced, longer),
        *(failing, chosen_again),
        *(ablations, ablation_claims, first_weights, layers, rates, sizes, table_2),
    )
}
BLOCKS |= {f"{name}_figure": picture(name) for name in SHOWN}


def fill(path: Path, records: Records) -> None:
    """Write the blocks of a Markdown file.

    Args:
        path: the file.
        records: what they are made of.
    """
    markdown.fill(path, KIND, lambda name: BLOCKS[name](records))
