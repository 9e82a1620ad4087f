"""The command line of a run, flags and overrides mixed, against Hydra's own parser."""

from pathlib import Path
from typing import Any

import pytest
from hydra._internal.utils import get_args_parser

from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.config.paths import conf_folder
from stream.errors import UserError


@pytest.mark.parametrize(
    ("arguments", "flags", "overrides"),
    [
        ("seed=1 -m learner.lr=1e-3,2e-3", {"multirun": True}, ["seed=1", "learner.lr=1e-3,2e-3"]),
        ("-cd my a=1 --cfg job b=2", {"config_dir": "my", "cfg": "job"}, ["a=1", "b=2"]),
        ("data=files --info", {"info": "all"}, ["data=files"]),
        ("~data.train --info plugins -p a", {"info": "plugins", "package": "a"}, ["~data.train"]),
        ("--multirun", {"multirun": True}, []),
    ],
)
def test_hydra_reads_what_was_meant(
    arguments: str, flags: dict[str, Any], overrides: list[str]
) -> None:
    parser = get_args_parser()
    found = vars(parser.parse_args(CommandLine(arguments.split()).for_hydra()))
    assert found == {**vars(parser.parse_args([])), **flags, "overrides": overrides}


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["-m", "resume=auto"], "auto"),
        (["resume='my runs/a'", "seed=1"], "my runs/a"),
        (["resume=runs/2026-11-29/03-42-00-adapter-ab12"], "runs/2026-11-29/03-42-00-adapter-ab12"),
        (["++resume=a", "resume=b"], "b"),
        (["resume=a", "resume=null"], None),
        (["seed=1"], None),
    ],
)
def test_the_last_value_of_a_setting(arguments: list[str], value: str | None) -> None:
    assert CommandLine(arguments).value("resume") == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resolve"], "--resolve has no effect without --cfg or --help"),
        (["-m", "--cfg", "job"], "--multirun and --cfg exclude each other"),
        (["-cd", "/no/such"], "--config-dir /no/such: no such folder"),
        (["seed=[1"], "cannot read 'seed=\\[1'"),
    ],
)
def test_mistakes_of_the_command_line(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_command_line(conf_folder(), CommandLine(arguments))


def test_the_folder_of_the_flag_is_composed_too(tmp_path: Path) -> None:
    settings = CommandLine(["task=[mine]", "-cd", str(tmp_path)]).settings()
    assert settings == ["task=[mine]", f"hydra.searchpath=['file://{tmp_path}']"]
