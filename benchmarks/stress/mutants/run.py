"""Checkpoints, choices among settings and accounting (`stream/run/`, `stream/tuning/`)."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import CHECKPOINT, GRID, SELECT, contract

MUTANTS = (
    *changes(
        "stream/run/checkpoint.py",
        (CHECKPOINT,),
        ("GENERATIONS_KEPT = 2", "GENERATIONS_KEPT = 1"),
        ("if hashlib.sha256(text).hexdigest() != digest:", "if not digest:"),
        ("if hashlib.sha256(data).hexdigest() != path.stem:", "if not data:"),
        ("        self._collect_garbage(generation, {*digests.values(), document})\n", ""),
        ("self._known - used - self._final_digests", "self._known - used"),
        ('                "rows": rows,\n', '                "rows": None,\n'),
        ("max(self.generations(), default=0) + 1", "max(self.generations(), default=0) + 2"),
        ("tensor.detach().cpu().contiguous()", "tensor.detach().cpu().contiguous().float()"),
    ),
    *changes(
        "stream/run/checkpoint_manager.py",
        (CHECKPOINT, *contract("adapter", "replay")),
        (
            "if (name := task_group(task)) not in known",
            "if (name := task_group(task)) or True",
        ),
        ("            learner.load_shared_state(store.load(checkpoint, SHARED))\n", ""),
        ("        self._rows.go_on(lines)\n", ""),
        (
            "            groups[TRAINING] = snapshot.tensors\n",
            "            groups[TRAINING] = dict(list(snapshot.tensors.items())[1:])\n",
        ),
    ),
    *changes(
        "stream/run/selecting.py",
        (SELECT,),
        ("candidate.seed(self.seed))", "self.seed)"),
        ("            parameter.data = parameter.data.clone()\n", "            pass\n"),
        ("if k not in READ_BY_OPTIMIZER}", "if k != 'size'}"),
        ("tensor.detach().clone() for name", "tensor.detach() for name"),
    ),
    *changes(
        "stream/run/choosing.py",
        (SELECT,),
        ("        sum(c.steps for c in tried),\n", "        tried[-1].steps,\n"),
    ),
    *changes(
        "stream/run/fitting.py",
        (SELECT,),
        ('SPLIT = "validation"', 'SPLIT = "test"'),
        ("            self.learner.forget(self._task)\n", "            pass\n"),
        ("waiting.pop(self._number, None)", "waiting.pop(0, None)"),
    ),
    *changes(
        "stream/tuning/grid.py",
        (GRID,),
        ("not in points:", "in points:"),
        ("self._most - len(so_far.trials) - len(found)", "self._most - len(found)"),
    ),
    *changes(
        "stream/tuning/record.py",
        (GRID,),
        ("(sign * (t.score or 0.0), -t.number)", "(sign * (t.score or 0.0), t.number)"),
        ("complete = len(scores) == len(runs)", "complete = bool(scores)"),
    ),
    *changes("stream/tuning/space.py", (GRID,), ("edge * ratio**sign", "edge * ratio")),
    *changes(
        "stream/run/accounting.py",
        ("tests/run/test_accounting.py",),
        ("            and after + 1 < len(run.tasks)\n", ""),
        ("self.looked_at = [*earlier, newest]", "self.looked_at = [newest]"),
    ),
    *changes(
        "stream/run/stored.py",
        contract("adapter", "lt_sft", "progressive"),
        ("for task in tasks[self._tasks :]:", "for task in tasks:"),
        (
            "            self._common |= {id(t): t for",
            "            self._common = {id(t): t for",
        ),
    ),
)
