"""From rows to batches (`stream/data/`), and how a set is cut by class (`stream/config/`)."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import LOOP, LOSSES, REFERENCES, REHEARSAL, REPLAY, contract

MUTANTS = (
    *changes(
        "stream/data/majority.py",
        (REFERENCES, *contract("majority")),
        ("minlength=task.num_outputs) + 1", "minlength=task.num_outputs) + 2"),
        ("counts / counts.sum()", "counts / len(labels)"),
    ),
    *changes(
        "stream/config/parts.py",
        ("tests/config/test_streams.py",),
        (
            "ordered = [labels[int(at)] for at in order]",
            "ordered = [labels[at] for at in sorted(order.tolist())]",
        ),
    ),
    *changes(
        "stream/data/build.py",
        ("tests/config/test_streams.py",),
        (
            "return [by_name[name] for name in published[order]]",
            "return [by_name[name] for name in by_name]",
        ),
    ),
    *changes(
        "stream/data/prepare/cutting.py",
        ("tests/data/test_cutting.py",),
        ("kept = np.flatnonzero(new >= 0)", "kept = np.flatnonzero(new > 0)"),
        ("whole.lines[split][new < 0]", "whole.lines[split][new < 1]"),
        ("repeats(rows.keys, rows.labels)", "repeats(rows.keys, rows.keys)"),
    ),
    *changes(
        "stream/data/prepare/samples.py",
        ("tests/data/test_samples.py",),
        ("taken = members[:per_class]", "taken = members[: per_class and 2 * per_class]"),
        ("keys = rows.keys if seed is None else _mixed(rows.keys, seed)", "keys = rows.keys"),
    ),
    *changes(
        "stream/data/batch.py",
        (
            "tests/data/test_batching.py",
            "tests/distributed/test_slices.py",
            REHEARSAL,
            LOSSES,
            REPLAY,
            "tests/training",
            "tests/distributed/test_training.py",
        ),
        ("return len(self) if self.count is None else self.count", "return len(self)"),
        (
            "device=self.input_ids.device) < self.count",
            "device=self.input_ids.device) <= self.count",
        ),
        ("torch.where(real, values, 0.0)", "values"),
        ("return counted.sum() / self.size", "return counted.sum() / len(self)"),
        ("count=None if mine.is_even else mine.own", "count=None"),
        ("            share=mine.share,\n", "            share=None,\n"),
        (
            ".clamp(max=len(self) - 1)",
            ".clamp(max=0)",
            "the rows that fill a batch up add no loss, whichever they repeat",
        ),
        ("        self.attention_mask[:rows, width:].zero_()\n", ""),
        ("            mine[len(theirs) :].fill_(_no_label(mine))\n        if", "        if"),
        (
            "self.count.fill_(rows if other.count is None else other.count)",
            "self.count.fill_(rows)",
        ),
        ("            self.share.fill_(other.share)\n", "            pass\n"),
        ("return self.only(slice(0, 1)) if", "return self.only(slice(1, 2)) if"),
        ("return self.labels if self.of_ranks is None else self.of_ranks", "return self.labels"),
        ("            of_ranks=self.labels,\n", "            of_ranks=None,\n"),
        ("                mine[len(theirs) :].fill_(_no_label(mine))\n\n", "\n"),
        (
            "width = max(part.width for part in chosen)",
            "width = min(part.width for part in chosen)",
        ),
        ("start=p.start - first, stop=p.stop - first", "start=p.start, stop=p.stop"),
        ("return sum(shares) if shares else None", "return shares[0] if shares else None"),
        ("    chosen[mine.own :] = _no_label(labels)\n", ""),
        ("else values[list(self.slice.rows)]", "else values[: len(self.slice.rows)]"),
    ),
    *changes(
        "stream/data/batching.py",
        ("tests/data/test_batching.py", LOSSES, LOOP, "tests/evaluation"),
        ("PAD_MULTIPLE = 8", "PAD_MULTIPLE = 16"),
        ("if most <= LONG else", "if most < LONG else", "512 is a multiple of both"),
        ("np.full(mask.shape, pad_id, np.int64)", "np.zeros(mask.shape, np.int64)"),
        ("(position >= first_lengths[:, None])", "(position > first_lengths[:, None])"),
        ("types = mask & (", "types = (mask | True) & ("),
        ("padded_length(lengths[start:stop])", "padded_length(lengths)"),
        ("BUCKET_BATCHES = 16", "BUCKET_BATCHES = 8"),
        ("return [batches[i] for i in generator.permutation(len(batches))]", "return batches"),
        ('"batches", task.name, epoch)', '"batches", epoch)'),
        ("np.argsort(-lengths, kind=", "np.argsort(lengths, kind="),
        ("batch_tokens // width", "batch_tokens // (2 * width)"),
    ),
)
