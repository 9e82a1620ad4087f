"""An objective that can have no value, or but one, is refused: as real runs have it."""

from pathlib import Path

import pytest

from stream.api import run_stream
from stream.errors import UserError
from stream.metrics.glossary import OF_RUNS
from stream.record.run_record import RunRecord
from stream.run.settings import compose_settings
from stream.tuning.objective import check_objective

TINY = ["backbone=tiny", "tracking=none", "device=cpu", "figures=false"]
TINY += ["data.train=16", "data.validation=8", "data.test=8"]
TINY += ["training.epochs=1", "training.min_steps=12", "training.batch_size=8"]
SHARED = "learner=finetune"  # earlier tasks change
MEMORY = {"bwt", "bti", "bwt_diaz", "rem", "bwt_plus", "forgetting", "forgetting_first"}


def refused(given: list[str]) -> set[str]:
    config, _ = compose_settings([*TINY, *given])
    told = {}
    for name in OF_RUNS:
        try:
            check_objective(name, config)
        except UserError as error:
            told[name] = str(error)
    assert all(line.startswith(f"tune.objective={name} ") for name, line in told.items())
    return set(told)


@pytest.mark.parametrize(
    "given",
    [
        ["task=[sst2]"],
        ["task=[stsb,sst2]"],
        ["task=[stsb]", "evaluation.baseline=false"],
        ["task=[sst2,rte]", "probe.every=1", "count_flops=true"],
        ["task=[sst2,rte]", "probe.every=3", "evaluation.unseen=true"],
        ["task=[sst2,rte]", "evaluation.unseen=true", "evaluation.baseline=false"],
        ["task=[sst2,rte]", "evaluation.linear_probe=true"],
        ["task=[sst2,rte]", "scenario=shared_head"],
    ],
    ids=", ".join,
)
def test_what_a_run_of_that_kind_lacks_is_refused(tmp_path: Path, given: list[str]) -> None:
    run_stream(folder=tmp_path / "run", overrides=[*TINY, SHARED, *given], quiet=True)
    metrics = RunRecord.read(tmp_path / "run").metrics
    assert refused([SHARED, *given]) == {name for name, value in metrics.items() if value is None}


@pytest.mark.parametrize("learner", ["adapter", "frozen", "ia3"])
def test_what_perfect_memory_makes_equal_decides_nothing(learner: str) -> None:
    given = ["task=[sst2,rte]", "evaluation.unseen=true"]
    assert refused([f"learner={learner}", *given]) - refused([SHARED, *given]) == MEMORY
