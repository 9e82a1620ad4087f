"""Frozen maps in 4 bits; a stand-in quantizes as the paper says, unless bitsandbytes is there."""

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from stream.data.batching import collate
from stream.errors import UserError
from stream.evaluation.evaluate import evaluate
from stream.learners.adapter import Adapter
from stream.learners.dora import Dora
from stream.learners.finetune import Finetune
from stream.models.four_bit import FourBitLinear, FourBitWeight
from stream.models.task_model import TaskModel
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import CPU, SHORT, made_task, tiny_encoder


def levels() -> torch.Tensor:
    """The 16 values of NF4 from the paper's section 3: quantiles of the normal distribution."""
    offset = (1 - 1 / 32 + 1 - 1 / 30) / 2
    positive = norm.ppf(np.linspace(offset, 0.5, 9)[:-1])
    negative = -norm.ppf(np.linspace(offset, 0.5, 8)[:-1])
    found = np.sort(np.concatenate([positive, negative, [0.0]]))
    return torch.tensor(found / found.max(), dtype=torch.float32)


def quantize_4bit(weight, *, blocksize, quant_type):
    assert (blocksize, quant_type) == (64, "nf4")
    blocks = weight.reshape(-1, 64)
    absmax = blocks.abs().amax(1)
    codes = ((blocks / absmax[:, None])[..., None] - levels()).abs().argmin(-1).flatten()
    return (codes[::2] * 16 + codes[1::2]).to(torch.uint8)[:, None], SimpleNamespace(absmax=absmax)


def dequantize_4bit(packed, state):
    codes = torch.stack([packed[:, 0] // 16, packed[:, 0] % 16], 1).flatten()
    values = levels()[codes.long()].reshape(-1, 64) * state.absmax[:, None]
    return values.reshape(state.shape).to(state.dtype)


@pytest.fixture(params=["stand-in", "bitsandbytes"])
def _library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "bitsandbytes":
        if find_spec("bitsandbytes") is None:
            pytest.skip("bitsandbytes is not installed")
        return
    module = ModuleType("bitsandbytes.functional")
    vars(module).update(
        quantize_4bit=quantize_4bit,
        dequantize_4bit=dequantize_4bit,
        QuantState=SimpleNamespace,
        get_4bit_type=lambda kind, device: levels(),
    )
    monkeypatch.setitem(sys.modules, "bitsandbytes", ModuleType("bitsandbytes"))
    monkeypatch.setitem(sys.modules, "bitsandbytes.functional", module)


def begun(make, storage: str = "nf4"):
    learner = make()
    model = TaskModel(tiny_encoder(), 0, dropout=0.0, precision="bf16", storage=storage)
    tasks = [made_task("a", 2), made_task("b", 5)]
    learner.attach(model, tasks=tasks, seed=0, pad_id=0)
    return learner, tasks


@pytest.mark.usefixtures("_library")
def test_a_map_is_that_of_the_nearest_values() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(32, 16)
    exact, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    layer._parameters["weight"] = FourBitWeight.of(layer.weight)
    layer.__class__ = FourBitLinear
    blocks = exact.reshape(-1, 64)
    scale = blocks.abs().amax(1, keepdim=True)
    near = levels()[((blocks / scale)[..., None] - levels()).abs().argmin(-1)] * scale
    found = layer.expanded(torch.float32)
    torch.testing.assert_close(found, near.reshape(16, 32), rtol=1e-4, atol=1e-5)
    values = torch.randn(4, 3, 32, requires_grad=True)
    layer(values).square().sum().backward()
    copy = values.detach().clone().requires_grad_()
    (copy @ found.T + bias).square().sum().backward()
    torch.testing.assert_close(values.grad, copy.grad)
    (packed,) = [p for name, p in layer.named_parameters() if name == "weight"]
    assert packed.numel() == 512 // 2 + 4 * 512 // 64  # 4.5 bits a number
    assert count_stored([{"weight": packed}]) == (512, 288)


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("make", [Adapter, Dora])
def test_learners_learn_on_a_base_in_four_bits(make) -> None:
    learner, tasks = begun(make)
    encoder = learner.model.encoder
    kinds = [type(m) for layer in encoder.layers() for m in layer.modules()]
    assert kinds.count(FourBitLinear) == 12  # six maps a layer
    cells = {}
    for task in tasks:
        losses = fit(learner, task, SHORT).losses
        assert np.isfinite(losses).all()
        cells[task.name] = evaluate(learner, task, "test", 512, CPU).digest
    again = {task.name: evaluate(learner, task, "test", 512, CPU).digest for task in tasks}
    assert again == cells
    usual, _ = begun(make, "float32")
    for task in tasks:
        fit(usual, task, SHORT)
    many, small = (count_stored(each.stored_states(tasks)) for each in (usual, learner))
    assert many[0] == small[0]
    maps = sum(
        m.in_features * m.out_features
        for m in learner.model.encoder.modules()
        if isinstance(m, FourBitLinear)
    )
    assert many[1] - small[1] >= maps * (4 - 4.5 / 8)


@pytest.mark.usefixtures("_library")
def test_the_output_is_near_that_of_whole_weights() -> None:
    batch, results = None, []
    for storage in ("float32", "nf4"):
        learner, (task, _) = begun(Adapter, storage)
        learner.start(task)
        batch = batch or collate([(task, task.split("train"), np.arange(8))], 0)
        learner.model.eval()
        with torch.no_grad(), learner.model.computing():
            results.append(learner.model.states(batch).texts)
    exact, found = results
    assert not torch.equal(exact, found)
    assert (exact - found).norm() < 0.2 * exact.norm()


def test_without_the_package_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.functional", None)
    with pytest.raises(UserError, match=r"nf4 needs bitsandbytes: pip install 'task-.*\[4bit\]'"):
        begun(Adapter)
    with pytest.raises(UserError, match="has no effect with learner=finetune"):
        begun(Finetune)
