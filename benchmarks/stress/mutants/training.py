"""The training loop, its schedule, snapshots and engines (`stream/training/`)."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import BF16, TRAINING, contract

MUTANTS = (
    *changes(
        "stream/training/loop.py",
        (TRAINING, *contract("adapter", "si")),
        ("        optimizer.zero_grad(set_to_none=True)\n", ""),
        ("torch_randomness(learner.seed,", "torch_randomness(0,"),
        (
            "                with state.paused():\n                    on_step",
            "                if True:\n                    on_step",
        ),
        (
            "with meter.everything() if meter is not None else nullcontext():",
            "with nullcontext():",
        ),
    ),
    *changes(
        "stream/training/schedule.py",
        (TRAINING,),
        ("parameter.ndim >= 2", "parameter.ndim >= 1"),
        ("eps=1e-6, foreach=True", "eps=1e-8, foreach=True"),
    ),
    *changes(
        "stream/training/fit_state.py",
        (TRAINING, *contract("adapter", "lt_sft", "replay")),
        (
            "load_randomness(self._state.tensors, self._device, World.now().rank)",
            "...",
        ),
        ("range(self._state.epoch, self._work.epochs)", "range(self._work.epochs)"),
        ("meter.total = resumed.flops", "meter.total = 0"),
        ("time.perf_counter() - self._state.seconds", "time.perf_counter()"),
        (
            "self._losses = _LossLog(task.name, self._device, self._state.losses)",
            "self._losses = _LossLog(task.name, self._device, [])",
        ),
        ("if not math.isfinite(value)", "if math.isinf(value)"),
        ('f"{len(self.values) + 1} with', 'f"{len(self.values)} with'),
    ),
    *changes(
        "stream/training/snapshot.py",
        (TRAINING, *contract("adapter", "replay")),
        ('("step", "exp_avg", "exp_avg_sq")', '("step", "exp_avg")'),
        ('    torch.set_rng_state(tensors[f"{of_rank}random.cpu"])\n', ""),
        ("min(len(stored), len(into))", "min(len(stored), len(into)) - 1"),
    ),
    *changes(
        "stream/training/flops.py",
        ("tests/training/test_flops.py",),
        ("rows = tuple((p.task.name, p.stop", 'rows = tuple(("", p.stop'),
        ("tuple(p.requires_grad for p in self._model.parameters())", "()"),
        ("    with preserved_rng_state():\n", "    if True:\n"),
    ),
    *changes(
        "stream/training/captured.py",
        (TRAINING, BF16, "tests/models/test_long_texts.py"),
        (
            "        self._stream.wait_stream(torch.cuda.current_stream())\n        graph",
            "        graph",
        ),
        (
            "        self._stream.wait_stream(torch.cuda.current_stream())\n        with",
            "        with",
        ),
        ("        torch.cuda.current_stream().wait_stream(self._stream)\n", ""),
        ("            copy_all(learned, before)\n        torch", "        torch"),
        ("        torch.cuda.set_rng_state(random)\n        loss", "        loss"),
        ("        copy_all(learned, before)\n        torch.cuda.set", "        torch.cuda.set"),
        ("            tensor.zero_()\n", "            pass\n"),
        ("return self._loss.clone()", "return self._loss"),
        ("if not self._trained or len(batch.parts) > 1 or", "if not self._trained or"),
        ('roomy = task.spec.target == "class" and self._guard is None', "roomy = True"),
        ("        own.take(shared)\n", ""),
        ("max(width, min(wide, most))", "min(wide, most)"),
        (
            "next((w for w in WIDTHS if width <= w), beyond)",
            "next((w for w in WIDTHS if width < w), beyond)",
        ),
        ("checks = changed and not learner.tags.cuda_graph_safe", "checks = False"),
    ),
    *changes(
        "stream/training/engine.py",
        (TRAINING, BF16),
        ('if wanted == "eager":', 'if wanted == "captured":'),
        (
            'learner.overrides("after_backward") and not learner.tags.cuda_graph_safe:',
            'learner.overrides("after_step") and not learner.tags.cuda_graph_safe:',
        ),
    ),
    *changes(
        "stream/training/capture_guard.py",
        (TRAINING,),
        ("        vars(self._learner).update(before)\n", ""),
        ("return tuple(map(_described, value))", "return len(value)"),
    ),
)
