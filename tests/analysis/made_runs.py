"""Runs of three tasks with round numbers, for the tests of analysis."""

import copy
import json
from pathlib import Path
from typing import Any

ORDER = ["sst2", "crowdflower_us_economic_performance", "cola"]
MATRIX = [[0.9, None, None], [0.8, 0.7, None], [0.6, 0.75, -0.1]]
# By hand: average (0.6 + 0.75 - 0.1) / 3; learning (0.9 + 0.7 - 0.1) / 3;
# BWT ((0.6 - 0.9) + (0.75 - 0.7)) / 2; forgetting ((0.9 - 0.6) + (0.7 - 0.75)) / 2.
METRICS = {"average_score": 1.25 / 3, "learning_score": 0.5, "bwt": -0.125, "forgetting": 0.125}
BASE = 1_000_000


def ledger_row(number: int) -> dict[str, Any]:
    return {
        "task": ORDER[number - 1],
        "trained_parameters": 10_000 * number,
        "trained_fraction": 0.01 * number,
        "stored_parameters": BASE + 100_000 * number,
        "stored_bytes": 4 * BASE,
        "buffer_examples": 0,
        "buffer_bytes": 0,
    }


def results_of(learner: str = "finetune", seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Results of a run of three tasks with round numbers."""
    results = {
        "schema": 1,
        "status": "complete",
        "learner": learner,
        "stream": "custom",
        "backbone": "minilm",
        "source": "generated",
        "split": "test",
        "order": ORDER,
        "titles": ["SST-2", "CF US economic performance", "CoLA"],
        "metric_names": ["accuracy", "accuracy", "matthews_correlation"],
        "seed": seed,
        "matrix": MATRIX,
        "metrics": METRICS,
        "memory": {"promised": False, "tasks_checked": 2, "tasks_identical": 1},
        "ledger": {
            "base_parameters": BASE,
            "total_multiple": 1.3,
            "tasks": [ledger_row(number) for number in (1, 2, 3)],
        },
        "timing": {"train_s": 60.0, "evaluate_s": 12.0},
        "data": {"hash": "a" * 64},
        "config": {"learner": {"lr": 5e-5}, "training": {"epochs": 3}, "seed": seed},
    }
    return copy.deepcopy(results | changes)


def write(folder: Path, results: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = results if isinstance(results, str) else json.dumps(results)
    (folder / "results.json").write_text(text, encoding="utf-8")
    return folder
