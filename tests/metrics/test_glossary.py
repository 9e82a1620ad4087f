"""The glossary against the catalogue, and against the tables of docs/metrics.md."""

import re
from pathlib import Path

import numpy as np

from stream.config.task import METRICS
from stream.formatting import MINUS
from stream.metrics import summarize
from stream.metrics.glossary import OF_RUNS, OF_TASKS

DOCS = (Path(__file__).parent.parent.parent / "docs" / "metrics.md").read_text()


def rows() -> dict[str, list[str]]:
    """The cells of the table of docs/metrics.md, by the metric's key."""
    found = {}
    for line in DOCS.partition("## Metrics that need other runs")[0].splitlines():
        keys, *cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        for key in re.findall(r"`(\w+)`", keys) if line.startswith("| `") else ():
            found[key] = [cell.replace("`", "").replace(MINUS, "-") for cell in cells]
    return found


def test_every_metric_of_a_run_is_explained_in_the_order_of_the_record() -> None:
    assert set(OF_RUNS) == set(summarize(np.eye(2)))
    assert list(OF_RUNS) == list(rows())
    assert set(OF_TASKS) == set(METRICS)


def test_formulas_are_those_of_the_documentation() -> None:
    shared = {"wf_10", "wp_10", "nfr_step", "nfi_step"}  # two in one row
    for key, (_, formula, source, undefined) in rows().items():
        explained = OF_RUNS[key]
        if key not in shared:
            assert explained.formula == formula, key
            assert explained.undefined == undefined, key
        years = re.findall(r"\b(?:19|20)\d\d\b", source)
        assert all(year in explained.source for year in years), key


def test_papers_have_the_numbers_of_the_documentation() -> None:
    numbers = dict(re.findall(r"([\w-]+) (\d{4}\.\d{5})[,.]", DOCS.partition("arXiv: ")[2]))
    assert len(numbers) >= 6
    used = {n for m in OF_RUNS.values() for n in re.findall(r"\d{4}\.\d{5}", m.source)}
    assert set(numbers.values()) <= used
