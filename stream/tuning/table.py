"""What people see of a search: a line for each trial, and at the end a table and the best."""

from collections.abc import Iterator, Sequence
from statistics import stdev

from stream.formatting import DASH, clock, count, percent, visible
from stream.tuning.record import TrialRecord, TuneRecord

HEADINGS = ("trial", "score", "spread", "time", "steps", "from", "settings")
REASON_LETTERS = 200


def trial_line(name: str, trial: TrialRecord, most: int) -> str:
    """Return a line about a trial that is done."""
    told = percent(trial.score) if trial.score is not None else f"failed: {_short(trial.reason)}"
    beyond = ", beyond the end of the grid" if trial.origin == "edge" else ""
    where = f"{name}, trial {trial.number + 1} of at most {most}"
    return f"{where}: {_settings(trial)}: {told} ({clock(trial.seconds)}{beyond})"


def closing_lines(search: TuneRecord) -> Iterator[str]:
    """Yield a table of each learner's trials, and how its search ended."""
    for name, found in search.learners.items():
        runs = count(len(search.seeds), "run")
        yield f"{name}: {search.objective} on {search.split} rows, {runs} a trial"
        yield from _table(found.trials, found.best)
        for key, how in found.ends.items():
            yield f"  {key}: {how}"
        for trial in found.trials:
            if trial.status == "failed":
                yield f"  trial {trial.number + 1} failed: {_short(trial.reason)}"
        yield ""
    yield from _best(search)


def _best(search: TuneRecord) -> Iterator[str]:
    """Yield a line for each learner about its best trial."""
    for name, found in search.learners.items():
        if found.best is None:
            yield f"best of {name}: none, all trials failed"
            continue
        best, used = found.trials[found.best], len(found.trials)
        score = f"{search.objective} {percent(best.score)}"
        yield f"best of {name}: {_settings(best)}: {score}, {used} of {search.most_trials} trials"


def _table(trials: Sequence[TrialRecord], best: int | None) -> Iterator[str]:
    """Yield a table of trials; the best has a star."""
    rows = [HEADINGS, *(_row(trial, is_best=trial.number == best) for trial in trials)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    for row in rows:
        yield "  ".join(["", *map(str.ljust, row, widths)]).rstrip()


def _row(trial: TrialRecord, *, is_best: bool) -> tuple[str, ...]:
    """Return a trial as a row of the table."""
    scores = [run.score for run in trial.runs if run.score is not None]
    return (
        f"{trial.number + 1}{'*' if is_best else ''}",
        percent(trial.score) if trial.score is not None else trial.status,
        percent(stdev(scores)) if len(scores) > 1 else DASH,
        clock(trial.seconds),
        f"{trial.steps:,}",
        trial.origin,
        _settings(trial),
    )


def _settings(trial: TrialRecord) -> str:
    """Return a trial's settings as text."""
    return ", ".join(f"{key}={value}" for key, value in trial.settings.items())


def _short(reason: str) -> str:
    return visible(reason, REASON_LETTERS)
