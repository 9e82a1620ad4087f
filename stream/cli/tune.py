"""``task-stream tune``: a search for settings of learners, judged on validation rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stream.cli.boundary import EXIT_FAILED, error_boundary
from stream.cli.run import of_workers
from stream.cli.terminal import outlive_readers
from stream.cli.trial_runs import TrialRuns
from stream.cli.tune_line import TuneLine, read_line
from stream.files.run_folder import check_folder_of_runs
from stream.files.writable import Place
from stream.formatting import count, data_label, from_here, stream_title
from stream.run.interrupt import StopAll, stop_requests
from stream.run.lock import exclusive_writer, require_locks
from stream.run.settings import register_groups
from stream.tuning.preset import write_preset
from stream.tuning.record import FILE_NAME, TuneRecord
from stream.tuning.search import Search, Searched, tried
from stream.tuning.table import closing_lines, trial_line

SEARCH = Place("folder of the search", "tune.out")
HELP = """Search settings of learners on validation rows; write each one's best as a preset.

  task-stream tune learner=adapter,finetune 'task=[sst2,rte]' tune.trials=8
  task-stream tune learner=lora learner.lr=5e-4,1e-3,2e-3 stream=glue9 tune.tasks=3 tune.seeds=3
  task-stream tune learner=adapter 'learner.lr=tag(log,interval(1e-4,1e-2))' learner.size=8,64
  task-stream tune learner=adapter,lora adapter.size=8,64 lora.rank=4,8 learner.lr=1e-3,2e-3

Settings are those of task-stream run -m, whose grammar they have:

  learner=A,B                 every one is searched by itself, with the same number of trials
  learner.FIELD=V1,V2         tried of every learner; NAME.FIELD=V1,V2 of one. Without any, the
                              learning rate is tried around its default
  learner.FIELD=interval(A,B) drawn by Optuna; tag(log,interval(A,B)) on a logarithmic scale
  'task=[A,B]' stream=NAME    what is learned; seed=0 is the first seed
  workers=4                   four runs at once, of all learners; workers.engine=ray
                              workers.address=HOST:6379 on a cluster. Or a launcher of Hydra's, with
                              one learner after another: hydra/launcher=joblib

and those of the search:

  tune.trials=12              the most settings that are tried of each learner
  tune.seeds=1                runs of each trial, whose mean counts
  tune.tasks=N                learn the first N tasks of the stream alone
  tune.objective=average_score  the metric that decides; all of them: task-stream metrics
  tune.engine=auto            grid, or optuna (auto: where an interval is given)
  tune.at_once=1              trials that Optuna asks for together
  tune.sampler_seed=0         the seed of Optuna's sampler
  tune.out=FOLDER             where trials, trials.json and presets go

A grid goes on beyond its end while the best lies there. Runs are judged on validation rows alone.
The same command goes on with a search, also with more trials. The best is used so:

  task-stream run --config-dir FOLDER learner=adapter_tuned

Flags: --config-dir FOLDER (more YAML files), --quiet (the result alone), --help
"""


def add_commands(commands: Any) -> None:
    """Add ``tune`` to the command line."""
    # No prefix makes an argument a flag here: they are read as those of `run`.
    command = commands.add_parser("tune", add_help=False, prefix_chars="\0")
    command.add_argument("arguments", nargs="*")
    command.set_defaults(execute=lambda given: main(given.arguments))


def main(arguments: Sequence[str]) -> int:
    """Search; return the exit code, 1 where all trials of a learner failed."""
    outlive_readers()
    if {"--help", "-h"} & set(arguments):
        print(HELP, end="")
        return 0
    register_groups()
    require_locks()
    line = read_line(arguments)
    searches = [Search(searched, line.options) for searched in line.learners]
    check_folder_of_runs(line.folder, SEARCH)
    line.folder.mkdir(parents=True, exist_ok=True)
    with error_boundary(_how_it_goes_on) as status, exclusive_writer(line.folder):
        found = _searched(line, searches, arguments)
        failed = any(learner.best is None for learner in found.learners.values())
        status.code = EXIT_FAILED if failed else 0
    return status.code


def _how_it_goes_on(error: BaseException) -> str:
    """Say behind what stopped a search how to go on."""
    stopped = isinstance(error, KeyboardInterrupt | ChildProcessError)
    return "; the same command goes on from here" if stopped else ""


def _searched(line: TuneLine, searches: Sequence[Search], arguments: Sequence[str]) -> TuneRecord:
    """Search every learner; return the record, which is written and shown."""
    record = _new_record(line, arguments)
    say = _said if not line.is_quiet else _unsaid
    say(_heading(line))
    swept = [f"learner.{key}" for searched in line.learners for key in searched.space]
    runs = TrialRuns(
        folder=line.folder.resolve(),
        fixed=line.fixed,
        learner=line.learners[0].name,
        swept=list(dict.fromkeys(swept)),
        seeds=line.seeds,
        objective=line.options.objective,
        workers=line.workers,
        device=line.config.device,
    )
    with _stoppable() as check, runs:
        record.learners = {search.searched.name: search.record for search in searches}
        for search, trial, ended in tried(searches, runs):
            record.write(line.folder)
            say(trial_line(search.searched.name, trial, record.most_trials))
            check()
            if ended:
                _write_preset(line.folder, search.searched, record)
    record.status = "complete"
    record.write(line.folder)
    print("\n".join([*closing_lines(record), *_usage(line, record)]), flush=True)
    return record


def _write_preset(folder: Path, searched: Searched, record: TuneRecord) -> None:
    """Write the preset of a learner, and its name into the record."""
    found = record.learners[searched.name]
    found.preset = write_preset(folder, searched.name, searched.learner, found, record)
    record.write(folder)


def _new_record(line: TuneLine, arguments: Sequence[str]) -> TuneRecord:
    """Return the record of a search that has tried nothing."""
    options, config = line.options, line.config
    return TuneRecord(
        command=list(arguments),
        stream=config.stream_name,
        tasks=list(config.task),
        split=config.evaluation.split,
        objective=options.objective,
        better="higher" if options.sign > 0 else "lower",
        most_trials=options.trials,
        seeds=line.seeds,
    )


def _heading(line: TuneLine) -> str:
    """Say what is about to be searched."""
    config, options = line.config, line.options
    learners = ", ".join(searched.name for searched in line.learners)
    where = stream_title(config.stream_name)
    return (
        f"tuning {learners} on {where}: {count(len(config.task), 'task')}, "
        f"{data_label(config.data.source)}, {config.backbone.name}; at most {options.trials} "
        f"trials each, {count(len(line.seeds), 'seed')} a trial, by {options.objective} on "
        f"validation rows ({from_here(line.folder)})"
    )


def _usage(line: TuneLine, record: TuneRecord) -> list[str]:
    """Return how what was found is used."""
    folder = from_here(line.folder)
    presets = [found.preset for found in record.learners.values() if found.preset]
    use = f"task-stream run --config-dir {folder} learner={presets[0]}" if presets else ""
    return [f"all trials: {folder / FILE_NAME}", *([f"use the best: {use}"] if use else [])]


def _said(text: str) -> None:
    print(text, flush=True)


def _unsaid(text: str) -> None:
    del text


@contextmanager
def _stoppable() -> Iterator[Callable[[], None]]:
    """Have signals stop the search inside the block; what is given looks whether one came.

    Raises:
        Interrupted: a signal asked to stop.
        ChildProcessError: a process of a launcher was killed.
    """
    with stop_requests(StopAll) as stop, of_workers(stop.check):
        yield stop.check
        stop.check()
