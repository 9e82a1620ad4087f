"""The mutants of `benchmarks.stress.mutation`: constants, signs, arguments, dropped calls.

Each is one change of one file that computes something else: a `Mutant`, in the module that is
called as the part of the program is. With the changes of a file stand the tests that should notice.
"""

from benchmarks.stress.mutants import (
    data,
    evaluation,
    learners,
    learners_shared,
    metrics,
    models,
    modules,
    record,
    run,
    training,
)
from benchmarks.stress.mutants.mutant import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS: tuple[Mutant, ...] = (
    *learners.MUTANTS,
    *learners_shared.MUTANTS,
    *models.MUTANTS,
    *modules.MUTANTS,
    *training.MUTANTS,
    *evaluation.MUTANTS,
    *metrics.MUTANTS,
    *record.MUTANTS,
    *data.MUTANTS,
    *run.MUTANTS,
)
