"""Logits of several batches, put together."""

import torch

from stream.models.heads import joined


def test_no_answer_is_where_a_text_of_another_batch_is_longer() -> None:
    """First and last tokens side by side, [B, 2 L]; all logits below 0."""
    short, long = -torch.rand(3, 2 * 4) - 1, -torch.rand(2, 2 * 6) - 1
    together = joined([short, long])
    assert torch.equal(together[:3, : 2 * 4], short)
    assert torch.equal(together[3:], long)
    ends = together[:3].unflatten(1, (6, 2))
    assert (ends.argmax(1) < 4).all()
    assert (ends.softmax(1)[:, 4:] == 0).all()
