"""Which examples go together in a batch, and how far they are padded.

B examples per batch, L tokens per example after padding.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from stream.data.batch import Batch, Part
from stream.data.task import Split, Task
from stream.seeding import numpy_generator

PAD_MULTIPLE = 8
LONG, LONG_MULTIPLE = 512, 64  # tokens: of longer texts there would be a thousand shapes
BUCKET_BATCHES = 16


def collate(chosen: Sequence[tuple[Task, Split, np.ndarray]], pad_id: int) -> Batch:
    """Pad examples of one or several tasks to one batch.

    L is the length of the longest example, rounded up (`padded_length`).

    Args:
        chosen: (task, split, indices of examples) of each part, in order.
        pad_id: the tokenizer's padding token.
    """
    lengths = np.concatenate([split.lengths_of(indices) for _, split, indices in chosen])
    first_lengths = np.concatenate([split.first_lengths[i] for _, split, i in chosen])
    position = np.arange(padded_length(lengths))
    mask = position < lengths[:, None]
    ids = np.full(mask.shape, pad_id, np.int64)
    stop = 0
    parts, labels = [], []
    for task, split, indices in chosen:
        start, stop = stop, stop + len(indices)
        is_token = mask[start:stop]
        sources = split.offsets[indices][:, None] + position
        ids[start:stop][is_token] = split.token_ids[sources[is_token]]
        parts.append(Part(task, start, stop, padded_length(lengths[start:stop])))
        labels.append(torch.from_numpy(split.labels[indices]))
    types = mask & (position >= first_lengths[:, None])
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask.astype(np.int64)),
        torch.from_numpy(types.astype(np.int64)),
        tuple(labels),
        tuple(parts),
    )


def padded_length(lengths: np.ndarray) -> int:
    """Return the padded length of examples of these lengths.

    That of the longest one, rounded up to a multiple of 8, and above 512 of 64, to keep the number
    of different shapes small.
    """
    most = int(lengths.max())
    multiple = PAD_MULTIPLE if most <= LONG else LONG_MULTIPLE
    return -(-most // multiple) * multiple


def epoch_order(
    lengths: np.ndarray, batch_size: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Return the indices of the examples of each batch of one epoch: a length-bucketed shuffle.

    The examples are shuffled, cut into buckets of 16 batches, sorted by length within each bucket
    and cut into batches; then the batches are shuffled. Every example occurs once, and there is
    little padding.

    Args:
        lengths: the number of tokens of each example, [N].
        batch_size: examples per batch; the last batch of a bucket may be smaller.
        generator: draws the shuffles.
    """
    shuffled = generator.permutation(len(lengths))
    bucket = batch_size * BUCKET_BATCHES
    batches = []
    for start in range(0, len(shuffled), bucket):
        chosen = shuffled[start : start + bucket]
        chosen = chosen[np.argsort(lengths[chosen], kind="stable")]
        batches.extend(chosen[i : i + batch_size] for i in range(0, len(chosen), batch_size))
    return [batches[i] for i in generator.permutation(len(batches))]


def training_rows(task: Task, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the indices of the examples of each training batch.

    A pure function of (seed, task name, epoch) for the same examples and batch size.

    Args:
        task: the task that is learned.
        batch_size: examples per batch.
        seed: the run's seed.
        epoch: from 0.
    """
    generator = numpy_generator(seed, "batches", task.name, epoch)
    return epoch_order(task.split("train").lengths, batch_size, generator)


def evaluation_batches(
    chosen: Sequence[tuple[Task, Split]],
    pad_id: int,
    batch_tokens: int,
    turns: slice = slice(None),
) -> Iterator[tuple[list[tuple[int, np.ndarray]], Batch]]:
    """Yield the examples of one or several tasks, longest first, in as few batches as possible.

    The shapes of the batches depend on the splits alone, so the same splits always give the same
    shapes.

    Args:
        chosen: (task, split) of each task.
        pad_id: the tokenizer's padding token.
        batch_tokens: the largest number of padded tokens per batch; a longer example is alone in
            its batch.
        turns: which of the batches; by default all.

    Yields:
        (position in ``chosen``, indices of examples) of each part, and the batch.
    """
    lengths = np.concatenate([split.lengths for _, split in chosen])
    positions = np.repeat(np.arange(len(chosen)), [len(split) for _, split in chosen])
    indices = np.concatenate([np.arange(len(split)) for _, split in chosen])
    by_length = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(by_length):
        width = padded_length(lengths[by_length[start : start + 1]])
        batches.append(by_length[start : start + max(batch_tokens // width, 1)])
        start += len(batches[-1])
    for batch in batches[turns]:
        present = np.unique(positions[batch]).tolist()
        parts = [(task, indices[batch[positions[batch] == task]]) for task in present]
        yield parts, collate([(*chosen[task], examples) for task, examples in parts], pad_id)
