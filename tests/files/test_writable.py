"""Folders that cannot be written to: one line with the path, the setting and what to do."""

import errno
import os
from pathlib import Path

import pytest

from stream.cli.overrides import CommandLine, check_command_line
from stream.cli.sweeps import check_sweep_folder
from stream.config.paths import conf_folder
from stream.data.text_encoder import TextEncoder
from stream.errors import UserError
from stream.files.atomic import write_atomic
from stream.files.writable import CACHE, RUN, FullDiskError, check_writable, folder_errors
from stream.run.lock import exclusive_writer
from stream.run.settings import compose_settings
from stream.run.setup import build_run

TINY = ("task=[cola]", "backbone=tiny", "tracking=none", "device=cpu", "data.train=8")
TINY += ("data.validation=4", "data.test=4")

# What stands at ``x``, the folder that is asked for, and why it cannot be.
IN_THE_WAY = [
    ("file", "x", "x is a file"),
    ("file", "x/deeper/still", "x is a file"),
    ("dangling", "x", "x is a link to nothing"),
    ("dangling", "x/y", "x is a link to nothing"),
    ("read-only", "x", "x: Permission denied"),
    ("read-only", "x/new", "x: Permission denied"),
    ("nothing", "x" * 300, "File name too long"),
    ("nothing", "/proc/x/y", "/proc"),  # root may write there, and nobody can
]
NAMES = ["plain", "with space", "o'brien run", 'a "b"', "[a]", "a,b", "k=v", "größe", "日本", "~x"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put something at ``x``; the system lets the administrator write everywhere."""
    path = Path("x")
    if kind == "file":
        path.write_text("a file")
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "read-only":
        path.mkdir()
        monkeypatch.setattr(os, "access", lambda folder, mode: Path(folder).name != "x")


def test_a_folder_called_as_the_home_folder_is_not_made(here: Path) -> None:
    with pytest.raises(UserError, match=r"hydra.run.dir=~/x: ~ is no home folder here"):
        check_writable(Path("~/x"), RUN)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(("kind", "asked", "reason"), IN_THE_WAY)
def test_what_is_in_the_way_is_named_before_anything_is_written(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    asked: str,
    reason: str,
    absolute: bool,
) -> None:
    put(kind, monkeypatch)
    before = sorted(here.rglob("*"))
    folder = here / asked if absolute else Path(asked)
    with pytest.raises(UserError) as caught:
        check_writable(folder, RUN)
    assert reason in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "choose another with hydra.run.dir=FOLDER" in str(caught.value)
    with pytest.raises(UserError, match=r"choose another with hydra.sweep.dir=FOLDER"):
        check_sweep_folder(str(folder), None)
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("name", NAMES)
def test_any_name_that_can_be_written_is_fine(here: Path, name: str) -> None:
    check_writable(Path(name), RUN)
    check_writable(here / name / name, RUN)
    Path(name).mkdir()
    check_writable(Path(name), RUN)
    with exclusive_writer(Path(name)):
        pass
    assert list(here.iterdir()) == [here / name]


def test_a_command_line_is_refused_for_its_run_folder(here: Path) -> None:
    Path("x").write_text("a file")
    line = CommandLine([*TINY, "hydra.run.dir=x/run"])
    with pytest.raises(UserError, match=r"run folder x/run: .*x is a file.*hydra.run.dir=FOLDER"):
        check_command_line(conf_folder(), line)


def test_a_named_sweep_and_one_without_a_name_need_runs(here: Path) -> None:
    Path("runs").write_text("a file")
    for name in ("s", None):
        with pytest.raises(UserError, match=r"runs is a file"):
            check_sweep_folder(None, name)


def test_no_sweep_goes_into_a_run_folder(here: Path) -> None:
    """There, `compare` would see the run alone."""
    Path("run").mkdir()
    check_sweep_folder("run", None)
    Path("run/results.json").touch()
    with pytest.raises(UserError, match=r"hydra.sweep.dir=run is a run folder"):
        check_sweep_folder("run", None)


def test_a_folder_that_cannot_be_locked_is_one_line(here: Path) -> None:
    (here / "run/lock").mkdir(parents=True)
    with pytest.raises(UserError, match=r"run folder run: nothing can be written there"):
        exclusive_writer(Path("run")).__enter__()


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_an_unusable_cache_is_named(here: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    put(kind, monkeypatch)
    config, _ = compose_settings([*TINY, "cache=x"])
    with pytest.raises(UserError, match=r"cache x: .*choose another with cache=FOLDER"):
        build_run(config, here)


def test_a_cache_that_is_full_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: TextEncoder, *rows: object) -> None:
        raise OSError("262144 requested and 512 written")  # as NumPy says it

    monkeypatch.setattr(TextEncoder, "encode", full)
    config, _ = compose_settings([*TINY, "cache=x"])
    with pytest.raises(FullDiskError, match=r"cache x: .*make room there, or .*cache=FOLDER"):
        build_run(config, here)


def test_a_full_disk_is_told_once_with_the_folder_of_the_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    outer, inner = folder_errors(Path("run"), RUN), folder_errors(Path("cache"), CACHE)
    Path("run").mkdir()
    with pytest.raises(FullDiskError) as caught, outer, inner:
        write_atomic(Path("run/results.json"), b"text")
    assert str(caught.value).startswith("run folder run: No space left on device; make room there")
    assert not list(Path("run").iterdir())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such file system here")
def test_a_folder_that_the_system_makes_nobody_is_named() -> None:
    folder = Path("/proc/new/cache")
    with (
        pytest.raises(UserError, match=r"cache /proc/new/cache: .*choose another with cache="),
        folder_errors(folder, CACHE),
    ):
        folder.mkdir(parents=True)


def test_errors_of_other_places_pass(here: Path) -> None:
    with pytest.raises(FileNotFoundError), folder_errors(Path("run"), RUN):
        Path("elsewhere/data.csv").read_text()
    with pytest.raises(ConnectionError), folder_errors(Path("run"), RUN):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
