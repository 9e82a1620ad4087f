"""MIGU: which rows learn, against the paper's equations in numpy, float64."""

import numpy as np
import pytest
import torch

from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners.finetune import Finetune
from stream.learners.migu import Migu
from stream.training.loop import fit
from tests.builders import SHORT, Stream

MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


def begun(three_tasks: list[Task], **settings) -> tuple[Stream, Batch]:
    """The second task begun, without dropout; texts of unlike lengths, so that there is padding."""
    run = Stream(Migu(**settings), three_tasks[:2])
    fit(run.learner, three_tasks[0], SHORT)
    task = three_tasks[1]
    run.learner.start(task)
    run.model.eval()
    batch = collate([(task, task.split("train"), np.arange(8))], 0)
    assert (batch.attention_mask == 0).any()
    return run, batch


def outputs(run: Stream, batch: Batch) -> dict[str, np.ndarray]:
    """What every map of the Transformer layers puts out, [B, L, D_out], by the map's name."""
    found, handles = {}, []
    for name, module in run.model.encoder.named_modules():
        if name.endswith(MAPS):
            handles.append(
                module.register_forward_hook(
                    lambda m, i, o, name=name: found.update({name: o.double().numpy()})
                )
            )
    with torch.no_grad():
        run.model(batch)
    for handle in handles:
        handle.remove()
    return found


def kept_rows(out: np.ndarray, mask: np.ndarray, masked: float) -> np.ndarray:
    """The rows that the paper's equations keep, one number after the other."""
    total = np.zeros(out.shape[-1])
    for text, real in zip(out, mask, strict=True):
        for token, is_token in zip(text, real, strict=True):
            if is_token:
                total += np.abs(token) / np.abs(token).sum()
    shares = total / mask.sum()
    assert shares.sum() == pytest.approx(1)
    return shares >= np.quantile(shares, masked)


@pytest.mark.parametrize("masked", [0.7, 0.25])
def test_the_rows_of_the_largest_outputs_learn(masked: float, three_tasks: list[Task]) -> None:
    run, batch = begun(three_tasks, masked=masked)
    found, mask = outputs(run, batch), batch.attention_mask.numpy()
    assert len(found) == 2 * 6
    run.learner.loss(batch).backward()
    whole = {
        n: p.grad.clone() for n, p in run.model.encoder.named_parameters() if p.grad is not None
    }
    run.learner.after_backward(batch)
    for name, parameter in run.model.encoder.named_parameters():
        if parameter.grad is None:
            continue
        linear, _, kind = name.rpartition(".")
        if linear not in found:  # an embedding or a LayerNorm
            assert torch.equal(parameter.grad, whole[name])
            continue
        rows = torch.from_numpy(kept_rows(found[linear], mask, masked))
        assert rows.float().mean() == pytest.approx(1 - masked, abs=1 / len(rows) + 0.01)
        assert torch.equal(parameter.grad[rows], whole[name][rows])
        assert not parameter.grad[~rows].any()
        assert kind == "bias" or "key" in name or whole[name][~rows].any()


def test_masked_rows_stay_in_the_first_step_and_move_by_momentum_later(
    three_tasks: list[Task],
) -> None:
    """As the released code, which masks gradients before AdamW: its moments are not masked."""
    run, batch = begun(three_tasks, masked=0.7, lr=1e-3)
    name = "body.encoder.layer.1.intermediate.dense"
    weight = run.model.encoder.get_parameter(f"{name}.weight")
    optimizer = torch.optim.AdamW(run.learner.trained_parameters().values(), weight_decay=0.0)
    masks, moved = [], []
    task = three_tasks[1]
    for rows in (np.arange(8), np.arange(8, 16)):
        batch = collate([(task, task.split("train"), rows)], 0)
        out = outputs(run, batch)[name]
        masks.append(~kept_rows(out, batch.attention_mask.numpy(), 0.7))
        before = weight.detach().clone()
        optimizer.zero_grad()
        run.learner.loss(batch).backward()
        run.learner.after_backward(batch)
        optimizer.step()
        moved.append((weight.detach() != before).any(1).numpy())
    assert not (moved[0] & masks[0]).any()
    assert moved[0][~masks[0]].all()
    left, since = masks[1] & ~masks[0], masks[1] & masks[0]
    assert left.any()
    assert moved[1][left].all()
    assert not moved[1][since].any()


def test_the_first_task_is_learned_without_a_mask(three_tasks: list[Task]) -> None:
    digests = []
    for learner in (Migu(masked=0.9), Finetune()):
        run = Stream(learner, three_tasks[:2])
        run.run()
        digests.append([cell.digest for cell in (run.matrix.cells[0][0], run.matrix.cells[1][1])])
    assert digests[0][0] == digests[1][0]
    assert digests[0][1] != digests[1][1]


def test_no_mask_is_finetune_bit_for_bit(three_tasks: list[Task]) -> None:
    run, plain = Stream(Migu(masked=0.0), three_tasks), Stream(Finetune(), three_tasks)
    run.finish()
    plain.finish()
    assert run.last_digests() == plain.last_digests()


def test_on_an_adapter_its_own_maps_are_masked(three_tasks: list[Task]) -> None:
    run, batch = begun(three_tasks, part="adapter", size=8, lr=1e-3)
    run.learner.loss(batch).backward()
    run.learner.after_backward(batch)
    named = dict(run.model.encoder.named_parameters())
    kept = {n: (p.grad != 0).any(1).sum().item() for n, p in named.items() if "down.weight" in n}
    assert len(kept) == 4
    assert set(kept.values()) == {3}  # 0.7 of 8 rows is between the 5th and the 6th
    assert all(p.grad is None for n, p in named.items() if n.endswith("query.weight"))


def test_rows_that_only_fill_up_a_batch_are_not_noted(three_tasks: list[Task]) -> None:
    """A captured step pads its batches with rows and tokens."""
    run, batch = begun(three_tasks)
    shares = []
    for each in (batch, batch.padded(12, batch.width + 8)):
        run.learner.loss(each)
        shares.append(dict(run.learner._magnitudes.shares))
    assert len(shares[0]) == 2 * 6
    for name, noted in shares[0].items():
        torch.testing.assert_close(shares[1][name], noted, rtol=1e-4, atol=1e-7)
