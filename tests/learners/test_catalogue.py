"""What is known of methods without importing them: from a cache that is right, or not at all."""

import importlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from benchmarks.fork import forked
from stream.config.setting import Settings
from stream.errors import UserError, require
from stream.learners import LEARNERS, catalogue
from stream.learners.base import Learner
from stream.learners.catalogue import Catalogue
from stream.learners.description import describe
from stream.learners.outline import Outline, StandIn, Target, outlined, stand_in
from stream.run.settings import as_values, compose_settings, with_learner

GROUP = "task_stream.learners"
METHOD = '''
"""A method."""

from dataclasses import dataclass

from made_methods._part import SIZE
from stream.config.setting import at_least, setting
from stream.learners.base import Learner


@dataclass
class Method(Learner):
    """Learn."""

    size: int = setting(SIZE, at_least(1))
'''


class Package:
    """A package of methods in a folder that is imported from, and the cache of what they are."""

    def __init__(self, room: Path):
        self.folder, self.cache = room / "made_methods", room / "cache"
        self.folder.mkdir()
        self.facts = room / "someones-1.0.dist-info"
        self.facts.mkdir()
        (self.facts / "METADATA").write_text("Metadata-Version: 2.1\nName: someones\nVersion: 1\n")
        self.write("__init__", "")
        self.write("_part", "SIZE = 4\n")
        self.write("first", METHOD)

    def write(self, name: str, text: str) -> None:
        """Write one module; the state of a file never comes back."""
        path = self.folder / f"{name}.py"
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        if before:
            os.utime(path, ns=(before + 1, before + 1))

    def offer(self, entry: str) -> None:
        """Write an entry point of the package."""
        (self.facts / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")

    def started(self) -> Catalogue:
        """What a program that begins now knows."""
        for name in [n for n in sys.modules if n.partition(".")[0] == "made_methods"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return Catalogue(importlib.import_module("made_methods"), GROUP)

    def file(self) -> Path:
        """The cache file."""
        (path,) = self.cache.rglob("*.json")
        return path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Package(tmp_path)
    for name in [n for n in sys.modules if n.partition(".")[0] == "made_methods"]:
        del sys.modules[name]


def said(found: Catalogue) -> tuple[object, ...]:
    """All that is known, and whether it is known without importing."""
    sizes = {n: s.size for n, s in found.settings.items() if hasattr(s, "size")}
    descriptions = {name: found.description(name) for name in found}
    return list(found), dict(found.broken), sizes, descriptions


def is_imported(name: str = "first") -> bool:
    return f"made_methods.{name}" in sys.modules


def test_a_second_start_knows_the_same_and_imports_only_what_is_asked_for(package: Package) -> None:
    package.write("second", METHOD.replace("Method", "Other"))
    package.write("wrong", "import no_such_module\n")
    first = package.started()
    expected = said(first)
    assert is_imported()
    second = package.started()
    assert said(second) == expected
    assert "first" in second
    assert not is_imported()
    assert second["first"].__name__ == "Method"
    assert is_imported()
    assert not is_imported("second")
    for found in (first, second):
        with pytest.raises(UserError, match=r"wrong\.py, line 1: ModuleNotFoundError"):
            found["wrong"]
        with pytest.raises(UserError, match="Did you mean 'first'"):
            found["frist"]


ODD = """
    where: Path = Path()
    sizes: list[int] = field(default_factory=list)
    far: float = float("inf")
"""


def test_defaults_that_json_does_not_know_keep_nothing_else_from_the_cache(
    package: Package,
) -> None:
    imports = "from dataclasses import field\nfrom pathlib import Path\n"
    package.write("odd", METHOD.replace("\nfrom made", f"{imports}\nfrom made") + ODD)
    first = package.started()
    assert not first.broken
    assert not issubclass(first.settings["odd"], StandIn)
    second = package.started()
    assert list(second) == list(first)
    assert issubclass(second.settings["first"], StandIn)
    assert second.settings["odd"].__name__ == "Method"
    assert not is_imported("first")


CHANGES: dict[str, Callable[[Package], None]] = {
    "the file": lambda p: p.write("first", METHOD.replace("(SIZE", "(SIZE + 1")),
    "what it imports": lambda p: p.write("_part", "SIZE = 5\n"),
    "a new file": lambda p: p.write("another", METHOD),
    "a file less": lambda p: (p.folder / "first.py").unlink(),
    "a broken file": lambda p: p.write("first", "1 / 0\n"),
    "an entry point": lambda p: p.offer("elsewhere = made_methods.first:Method"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_at_once(change: str, package: Package) -> None:
    before = said(package.started())
    assert said(package.started()) == before
    CHANGES[change](package)
    now = said(package.started())
    assert now != before
    package.file().unlink()
    assert said(package.started()) == now  # as without a cache


def test_a_broken_file_is_mended_where_it_imports_from(package: Package) -> None:
    package.write("_part", "SIZE = 1 / 0\n")
    assert "first" in package.started().broken
    package.write("_part", "SIZE = 2\n")
    assert package.started().settings["first"].size == 2


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = (package.folder / "first.py").stat().st_mtime_ns + 10**12
    os.utime(package.folder / "first.py", ns=(ahead, ahead))
    assert "first" in package.started()
    assert not list(package.cache.rglob("*.json"))


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"\xff\xfe", b'{"basis": {}}', None])
def test_a_damaged_file_is_written_anew(damage: bytes | None, package: Package) -> None:
    expected = said(package.started())
    whole = package.file().read_bytes()
    package.file().write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert said(package.started()) == expected
    assert said(package.started()) == expected
    assert not is_imported()


def test_a_cache_of_another_version_is_not_read(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(package.started())
    monkeypatch.setattr(catalogue, "installed_version", lambda: "99")
    said(package.started())
    assert is_imported()


def test_without_a_folder_for_the_cache_all_works(package: Package) -> None:
    package.cache.write_text("a file")  # of root's own, even a read-only folder can be written to
    assert said(package.started()) == said(package.started())
    assert is_imported()
    assert package.cache.read_text() == "a file"


def test_two_processes_at_once_leave_one_whole_file(package: Package, tmp_path: Path) -> None:
    out = tmp_path / "out"
    children = [forked(lambda: said(package.started()), tmp_path, out, out) for _ in range(4)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * 4, out.read_text()
    assert [p.name for p in package.file().parent.iterdir()] == [package.file().name]
    said(package.started())
    assert not is_imported()


# What stands for a method.

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.integers(),
    st.floats(),
    st.floats(0, 1),
    st.sampled_from(["adapter", "encoder", "all", "none", "gelu", "both", ""]),
    st.lists(st.integers(), max_size=1),
)
FIELDS = [(n, f.name) for n in LEARNERS for f in fields(LEARNERS.settings[n])]


def outcome(kind: type[Settings], values: dict[str, Any]) -> object:
    """The values that an object has, or why there is none."""
    try:
        return vars(kind(**values))
    except UserError as error:
        return str(error)


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(FIELDS), VALUES, st.data())
def test_it_refuses_the_same_with_the_same_words(
    chosen: tuple[str, str], value: Any, data: st.DataObject
) -> None:
    """Of one field, and of one more beside it."""
    name, field = chosen
    other = data.draw(st.sampled_from([f for n, f in FIELDS if n == name]))
    values = {other: data.draw(VALUES), field: value}
    assert repr(outcome(LEARNERS.settings[name], values)) == repr(outcome(LEARNERS[name], values))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("pals", {"size": 7}),
        ("pals", {"size": 12, "lr": -1.0}),
        ("pals", {"attention_heads": 0}),  # as long as nobody divides by it first
        ("shared_adapter", {"part": "encoder"}),
        ("shared_adapter", {"part": "nothing"}),
        ("shared_adapter", {"size": 8}),
    ],
)
def test_a_method_of_the_program_that_checks_itself(name: str, values: dict[str, Any]) -> None:
    light = outcome(LEARNERS.settings[name], values)
    assert light == outcome(LEARNERS[name], values)
    assert isinstance(light, str) or name == "shared_adapter"


@pytest.mark.parametrize("name", LEARNERS)
def test_every_method_of_the_program_is_known_without_it(name: str) -> None:
    light, kind = LEARNERS.settings[name], LEARNERS[name]
    assert issubclass(light, StandIn)
    assert (light.name, light.tags, light.GROUP) == (kind.name, kind.tags, kind.GROUP)
    assert LEARNERS.description(name) == describe(kind, name, kind.tags)
    assert vars(light()) == vars(kind())
    assert light().learner() == kind()


def test_a_method_with_a_check_of_its_own_is_asked_unless_all_is_default() -> None:
    asked = []

    @dataclass
    class _Odd(Learner):
        size: int = 3

        def __post_init__(self) -> None:
            super().__post_init__()
            asked.append(self.size)
            require(self.size % 2 == 1, f"learner.size must be odd, got {self.size}")

    _Odd.name = "odd"
    light = stand_in(outlined(_Odd, Target("here")), lambda: _Odd)
    asked.clear()
    light()
    assert asked == []
    light(size=5)
    assert asked == [5]
    with pytest.raises(UserError, match="must be odd, got 4"):
        light(size=4)


@dataclass
class AFolder(Learner):
    where: Path = Path()


@dataclass
class Many(Learner):
    sizes: tuple[int, ...] = (1, 2)


@dataclass
class NotANumber(Learner):
    size: float = float("nan")


@dataclass(kw_only=True)
class NoDefault(Learner):
    size: int


@pytest.mark.parametrize("kind", [AFolder, Many, NotANumber, NoDefault])
def test_fields_that_cannot_be_written_down_leave_the_method_itself(kind: type[Learner]) -> None:
    kind.name = "made"
    assert outlined(kind, Target("here")).fields is None


def test_other_processes_find_it_by_its_name() -> None:
    """Jobs of a sweep are pickled, by pickle or by cloudpickle."""
    config, _ = compose_settings(["task=[rte]", "learner=lora", "learner.rank=3"])
    node = OmegaConf.structured(config.learner)
    cloudpickle = pytest.importorskip("cloudpickle")
    for module in (pickle, cloudpickle):
        again, as_node = pickle.loads(module.dumps((config, node)))
        assert type(again.learner) is type(config.learner) is OmegaConf.get_type(as_node)
        assert again.learner == config.learner
    real = with_learner(config)
    assert pickle.loads(cloudpickle.dumps(real)) == real
    assert isinstance(real.learner, LEARNERS["lora"])
    assert as_values(real) == as_values(config)
    assert with_learner(real) is real


def test_an_outline_is_json() -> None:
    for name, kind in LEARNERS.items():
        outline = outlined(kind, Target(kind.__module__))
        again = msgspec.json.decode(msgspec.json.encode(outline), type=Outline)
        assert again == outline
        assert repr(again) == repr(outline), name  # a whole number is one again
