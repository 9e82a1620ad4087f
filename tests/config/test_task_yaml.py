"""Task files: names that a command line and YAML take for texts, and values that come back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.config.source import FilesSource, HubSource
from stream.config.task import TaskSpec
from stream.config.task_yaml import is_task_name, proposed_name, read_task, write_task

NASTY = [
    "${x}",
    "\\${x}",
    "${",
    "???",
    "yes",
    "null",
    "1e5",
    "~",
    "*",
    "#",
    "\x07",
    "\x85",
    "😀",
    "",
]
TEXTS = st.lists(st.sampled_from([*NASTY, "\u2028", " ", "a", "\\", "'", '"', ": "]), max_size=4)
TEXTS = TEXTS.map("".join)


@settings(max_examples=12, deadline=None)
@given(texts=st.lists(TEXTS, min_size=3, max_size=5, unique=True))
def test_what_is_written_is_read_back(texts: list[str]) -> None:
    scalars = [text.replace("???", "??") for text in texts]
    files = FilesSource(text=[f"{texts[0]}."], label=f"{scalars[1]}.", folder=scalars[2])
    files.values = {text: text for text in texts}
    hub = HubSource(exclude=texts)
    spec = TaskSpec(
        title=f"{scalars[0]}.", kind="single", labels=texts, metric="accuracy", files=files, hub=hub
    )
    spec.source = scalars[2]
    assert read_task(write_task("mine", spec), "mine") == spec


@pytest.mark.parametrize(
    "name",
    [
        "2024",
        "1_000",
        "1e5",
        "nan",
        "inf",
        "true",
        "No",
        "on",
        "null",
        "defaults",
        "a.b",
        "a b",
        "ä",
        "",
    ],
)
def test_names_that_mean_something_else_are_changed(name: str) -> None:
    assert not is_task_name(name)
    assert is_task_name(proposed_name(name))


def test_a_proposed_name_is_free_and_short() -> None:
    assert proposed_name("my film.v2") == "my_film_v2"
    assert proposed_name("sst2", {"sst2", "sst2_2"}) == "sst2_3"
    assert is_task_name("2d") == is_task_name("sst2") == is_task_name("a-b_C") == True  # noqa: E712
    assert is_task_name(proposed_name("x" * 300, {"x" * 54}))
