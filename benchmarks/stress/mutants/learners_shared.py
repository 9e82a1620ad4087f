"""What all methods share (`stream/learners/`), or several (`stream/learners/_shared/`)."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import (
    BUFFERS,
    COEFFICIENTS,
    COMPOSITION,
    DIRECTIONS,
    ISOLATED,
    LOOP,
    LOSSES,
    OLORA,
    PROGRESSIVE,
    PROTOTYPE,
    PUBLISHED,
    REFERENCES,
    REHEARSAL,
    REPLAY,
    SEQUENTIAL,
    SHARING,
    contract,
)

MUTANTS = (
    *changes(
        "stream/learners/workload.py",
        (LOOP, REFERENCES, ISOLATED, *contract("lt_sft")),
        ("max(training.epochs, -(", "min(training.epochs, -("),
        (
            "2 * self.epochs, 2 * self.steps, 2 * self.examples",
            "2 * self.epochs, self.steps, 2 * self.examples",
        ),
    ),
    *changes(
        "stream/learners/_shared/composed.py",
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("stacked")),
        ("reads_past_tasks=True", "reads_past_tasks=False"),
        ("self.reduction, self.init_std)", "2 * self.reduction, self.init_std)"),
    ),
    *changes(
        "stream/learners/_shared/fitted.py",
        (REFERENCES, *contract("majority")),
        ("seeded=False", "seeded=True"),
        ("return Workload(0, 0, 0)", "return Workload(1, 1, 1)"),
    ),
    *changes(
        "stream/learners/_shared/quadratic.py",
        (COEFFICIENTS, SEQUENTIAL, *contract("ewc", "si")),
        ("self._stored[weight] + importance[name]", "importance[name].clone()"),
        (
            "gradient if pull is None else gradient + pull",
            "gradient if pull is None else gradient - pull",
        ),
    ),
    *changes(
        "stream/learners/_shared/replay_buffer.py",
        (COEFFICIENTS, REPLAY, BUFFERS, *contract("replay")),
        ("order = generator.permutation(len(train))", "order = np.arange(len(train))"),
        ('(self._seed, "memory"', '(0, "memory"'),
        ("np.sort(np.concatenate(chosen))", "np.concatenate(chosen)"),
        ("weights = weights / weights.sum()", "pass"),
    ),
    *changes(
        "stream/learners/_shared/held_rows.py",
        (SEQUENTIAL, SHARING, COEFFICIENTS),
        ("if self.dark else", "if not self.dark else"),
        ("each.weight * len(mixture)", "each.weight"),
        ("columns.masked_fill(places >= 0, IGNORED_LABEL)", "columns"),
    ),
    *changes(
        "stream/learners/_shared/replaying.py",
        (COEFFICIENTS, REPLAY, LOSSES, *contract("replay", "derpp")),
        (
            "return any(name == met.head_name for met in (task, *self.learned))",
            "return name == task.head_name",
        ),
        (
            'None if self.budget == "all" else int(self.budget)',
            'None if self.budget == "all" else int(self.budget) // 2',
        ),
        (
            "self.seed, self.balance, self.selection, self._vectors",
            "0, self.balance, self.selection, self._vectors",
        ),
        ("self.pad_id, self.replayed)", "self.pad_id, self.replayed // 2)"),
        ("summed_loss(batch.spans, self.model(batch.spans))", "torch.zeros(())"),
    ),
    *changes(
        "stream/learners/_shared/selection.py",
        (BUFFERS,),
        ("generator.integers(number + 1)", "generator.integers(number // 2 + 1)"),
        ("squares + 2 * along + sum_square)", "squares + along + sum_square)"),
        ("np.minimum(share, (sizes - quotas)[open_sets])", "(sizes - quotas)[open_sets]"),
    ),
    *changes(
        "stream/learners/_shared/cone.py",
        (REHEARSAL,),
        ("-gradient - margin * others.sum(1)", "-gradient + margin * others.sum(1)"),
        ("return margin + more", "return more"),
    ),
    *changes(
        "stream/learners/_shared/directions.py",
        (DIRECTIONS, SHARING),
        ("known = flat[: basis.shape[1]]", "known = flat[-basis.shape[1] :]"),
        ("known -= (basis @ known) @ basis", "known -= 0.5 * (basis @ known) @ basis"),
        ("if row.norm() > SMALLEST * size", "if True"),
    ),
    *changes(
        "stream/learners/_shared/sums.py",
        (PROTOTYPE,),
        ("(self._values + penalty)", "(self._values + 2 * penalty)"),
        ("- 2 * held_out.products", "- held_out.products"),
        ("more = (0, outputs - len(counts))", "more = (outputs - len(counts), 0)"),
    ),
    *changes(
        "stream/learners/_shared/reparameterized.py",
        (PROGRESSIVE, *contract("progressive_prompts", "prefix_tuning")),
        ("                vectors.grad = None\n", "                pass\n"),
        ("        if self.mlp:\n            self._write()", "        pass"),
    ),
    *changes(
        "stream/learners/_shared/sequential.py",
        (COEFFICIENTS, PUBLISHED, SEQUENTIAL, *contract("shared_adapter", "ewc")),
        ("or name in self._layernorms or super()", "or super()"),
        ("Architecture(encoder.width, self.size)", "Architecture(encoder.width, 64)"),
    ),
    *changes(
        "stream/learners/_shared/sparse.py",
        (COEFFICIENTS, ISOLATED, *contract("lt_sft", "diff_pruning")),
        ("self.second_start(name, change) * mask", "self.second_start(name, change)"),
        ("copy_all(parameters, [torch.where(*each) for each in chosen])", "pass"),
        ("gradient.mul_(chosen)", "pass"),
        ("p.detach() - first[name] for", "first[name] - p.detach() for"),
        ("flat.topk(", "flat.abs().topk(", "importances are sizes, never below 0"),
    ),
    *changes(
        "stream/learners/hooks.py",
        (
            COEFFICIENTS,
            PUBLISHED,
            LOOP,
            OLORA,
            *contract("adapter", "replay", "progressive", "joint", "si"),
        ),
        ("[*(names[: names.index(task)] if task in names else names), task]", "[*names, task]"),
        (
            "return batch_loss(batch, self.model(batch))",
            "return batch_loss(batch, self.model(batch)) / 2",
        ),
        (
            "task, epoch.batch_size, self.seed, epoch.index)",
            "task, epoch.batch_size, self.seed, 0)",
        ),
        (
            "task, epoch.batch_size, self.seed, epoch.index)",
            "task, epoch.batch_size, 0, epoch.index)",
        ),
    ),
    *changes(
        "stream/learners/base.py",
        (
            COEFFICIENTS,
            PUBLISHED,
            LOOP,
            OLORA,
            *contract("adapter", "replay", "progressive", "joint", "si"),
        ),
        (
            "            self.mark_trained(task)\n            self.task_parameters.start(",
            "            self.task_parameters.start(",
        ),
        (
            "self.task_parameters.start(task.name, self.initial_values(task.name))",
            "self.task_parameters.start(task.name, self.task_parameters.first)",
        ),
        (
            "            self.buffer.add(task)\n        self.end_task(task)",
            "            pass\n        self.end_task(task)",
        ),
        (
            "draw_into(self._fresh[name], self.seed, name)",
            "draw_into(self._fresh[name], 0, name)",
        ),
        ("self.seed, task)}", "0, task)}"),
        ("        self.shared_tensors.clear()\n", ""),
        ("        copy_named(tensors, self.fit_tensors)\n", ""),
        (
            "copy_named(tensors, {name: parameters[name] for name in named})",
            "pass",
        ),
        ("modules_of(*self._serving_sources(task).names)", "modules_of(task)"),
        ("            self.model.rest_heads(but=task.head_name)\n", "            pass\n"),
        ("return {**model, **kept, **heads}", "return {**model, **kept}"),
    ),
    *changes(
        "stream/learners/ownership.py",
        ("tests/learners/test_ownership.py",),
        ("copied = trained - task_of.keys() if", "copied = trained if"),
        ("set() if tags.is_multitask else task_of.keys()", "task_of.keys()"),
        ("frozenset(trained - of_tasks - copied)", "frozenset(trained - of_tasks)"),
        ("if task in tasks]", "if task in tasks[-1:]]"),
    ),
)
