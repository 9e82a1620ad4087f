"""Labels that look alike stay classes of their own, and a run says so."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stream.config.cut import CutSpec
from stream.config.data import FilesData
from stream.config.parts import parts_of
from stream.config.run import RunConfig
from stream.config.source import FilesSource
from stream.data.build import build_tasks
from stream.data.look_alikes import look_alikes
from stream.data.text_encoder import TextEncoder
from tests.builders import made_spec
from tests.data.test_text_encoder import MARKS, made_tokenizer

NUMBERS = ["1", "1.0", "01", "2"]


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (NUMBERS, [["1", "1.0", "01"]]),
        (["0", "-0", "0e5", ".5", "0.50"], [["0", "-0", "0e5"], [".5", "0.50"]]),
        (["12345678901234567891", "12345678901234567892", "1_0", "10", "nan"], []),
        (
            ["Yes", "yes ", "no", "No\u00a0way", "no way"],
            [["Yes", "yes "], ["No\u00a0way", "no way"]],
        ),
        (["\uff11", "1", '"01"', "true", "1.1", "1.2"], [["\uff11", "1", '"01"']]),
    ],
)
def test_what_looks_alike(names: list[str], groups: list[list[str]]) -> None:
    assert look_alikes(names) == groups


def test_a_run_names_them_and_merges_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [f"text {i},{NUMBERS[i % 4]}\n" for i in range(80)]
    (tmp_path / "all.csv").write_text("text,label\n" + "".join(rows))
    files = FilesSource(folder=str(tmp_path), text=["text"], splits={"all": "all.csv"})
    spec = replace(made_spec(), labels=NUMBERS, files=files)
    made_one = replace(
        spec, labels=["1", "2"], files=replace(files, values=dict.fromkeys(NUMBERS[:3], "1"))
    )
    encoder = TextEncoder(made_tokenizer(tmp_path, MARKS["bert"]), 12, tmp_path)
    alike = "labels that look alike are classes of their own; values: in a task's YAML makes them"
    for task, num_classes, said in [
        ({"mine": spec}, 4, [f"{alike} one: mine ('1' and '1.0' and '01')"]),
        ({"mine": made_one}, 2, []),
        (
            parts_of("cut", spec, CutSpec(classes=2)),
            2,
            [f"{alike} one: cut ('1' and '1.0' and '01')"],
        ),
    ]:
        caplog.clear()
        config = RunConfig(data=FilesData(), task=task, cache=str(tmp_path))
        with caplog.at_level(logging.WARNING):
            tasks, _ = build_tasks(config, encoder)
        assert [r.getMessage() for r in caplog.records if "look alike" in r.getMessage()] == said
        assert len(np.unique(tasks[0].split("train").labels)) == num_classes
