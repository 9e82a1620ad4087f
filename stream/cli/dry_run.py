"""``task-stream run --dry-run``: what would run and about what it would take; nothing is run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from stream.cli.command_line import CommandLine
from stream.cli.trials import Trials
from stream.config.composition import Composition
from stream.config.typed import parse
from stream.errors import require
from stream.formatting import count, data_label, stream_title
from stream.record.method_name import name_given
from stream.report.status import Status, console_for

if TYPE_CHECKING:
    from stream.report.forecast import Foretold
    from stream.run.dry_run.foretell import Forecast, Foreteller


def dry_run(folder: Path, line: CommandLine) -> None:
    """Say what a command line, which was checked, would do.

    Args:
        folder: the YAML files.
        line: what stands behind ``task-stream run``.

    Raises:
        UserError: something asked for is not there or makes no sense.
    """
    require(line.value("resume") is None, "--dry-run is for runs that start; leave resume= out")
    console = console_for()
    if line.multirun:
        _show_jobs(Trials(folder, parse(line.settings()), line.config_name), console)
    else:
        composition = Composition.of(folder, line.settings(), line.config_name)
        exact = line.value("hydra.run.dir") is not None
        _show_run(composition, console, exact=exact)


def _show_run(composition: Composition, console: Console, *, exact: bool) -> None:
    """Show one run; its folder has a name of its own unless it is ``exact``."""
    config, folder = composition.run_config(), composition.run_folder
    with _foreteller(console, config.display) as (foreteller, _):
        forecast = foreteller.of(config)
    from stream.report.forecast import run_table, task_table

    name = name_given(config.learner.name, composition.hydra.overrides.task)
    console.print(
        f"{name} on {stream_title(config.stream_name)}, "
        f"{data_label(config.data.source)}, {config.backbone.name}, seed {config.seed}; "
        "a dry run: nothing is written",
        highlight=False,
        markup=False,
    )
    console.print(task_table(forecast.tasks, forecast.plan))
    console.print(run_table(_foretold("", forecast), forecast.leaks, config.leaks))
    console.print(_measured([forecast]), highlight=False, soft_wrap=True)
    new = "" if exact else " (or with a later time)"
    console.print(f"run folder: {folder}{new}", highlight=False, markup=False, soft_wrap=True)


def _show_jobs(trials: Trials, console: Console) -> None:
    """Show the jobs of a multirun."""
    jobs, total = trials.jobs()
    forecasts = []
    with _foreteller(console, jobs[0][1].display) as (foreteller, status):
        for number, (_, config) in enumerate(jobs, 1):
            status.stage(f"job {number} of {len(jobs)}")
            forecasts.append(foreteller.of(config))
    from stream.report.forecast import job_lines

    told = [
        _foretold(", ".join(job), forecast)
        for (job, _), forecast in zip(jobs, forecasts, strict=True)
    ]
    console.print(f"{count(total, 'job')}; a dry run: nothing is written", highlight=False)
    for text in job_lines(told, total):
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    console.print(_measured(forecasts), highlight=False, soft_wrap=True)


@contextmanager
def _foreteller(console: Console, mode: str) -> "Iterator[tuple[Foreteller, Status]]":
    """Import what foretells runs, and show what it does inside the block."""
    with Status(console, mode) as status:
        status.stage("loading torch")
        from stream.run.dry_run.foretell import Foreteller

        began = ""

        def notify(what: str, detail: str) -> None:
            nonlocal began
            if what != began:
                status.stage(what)
                began = what
            status.update(detail)

        yield Foreteller(notify), status


def _foretold(settings: str, forecast: "Forecast") -> "Foretold":
    """Return what is told of a run."""
    from stream.report.forecast import Foretold

    return Foretold(settings, len(forecast.tasks), forecast.plan, forecast.estimate)


def _measured(forecasts: "Sequence[Forecast]") -> str:
    """Say what the estimates come from."""
    all_costs = {id(forecast.costs): forecast.costs for forecast in forecasts}.values()
    steps = sum(costs.steps for costs in all_costs)
    scored = sum(costs.evaluations for costs in all_costs)
    return (
        f"estimated from {count(steps, 'step')} and {count(scored, 'evaluation')} on this machine "
        "as busy as it is now"
    )
