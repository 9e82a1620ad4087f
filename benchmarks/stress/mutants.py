"""The mutants of `benchmarks.stress.mutation`: constants, signs, arguments, dropped calls.

Each is one change of one file that computes something else. The tests named with a file are those
that should notice, cheap ones first; ``path[NAME]`` are the tests of one learner in a file.
"""

from dataclasses import dataclass
from pathlib import Path

Change = tuple[str, str] | tuple[str, str, str]


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        file: where, relative to the repository.
        old: text that occurs there exactly once.
        new: what stands in its place.
        tests: what should fail, as arguments of pytest; ``path[NAME]`` are one learner's.
        equivalent: why no test can fail; empty where one has to.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def change(self) -> str:
        """The change on one line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{old!r} -> {new!r}"

    def applied(self, tree: Path) -> str:
        """Return the file's text in ``tree`` with the change made.

        Raises:
            ValueError: the text does not occur exactly once.
        """
        text = (tree / self.file).read_text(encoding="utf-8")
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {found} times, expected once")
        return text.replace(self.old, self.new)


def contract(*learners: str) -> tuple[str, ...]:
    """Return the contract tests of some learners."""
    return tuple(f"tests/contract/test_learners.py[{name}]" for name in learners)


SEQUENTIAL = "tests/learners/test_sequential.py"
FAMILY_MAPS = "tests/learners/test_maps_of_families.py"
ISOLATED = "tests/learners/test_isolated.py"
REPLAY = "tests/learners/test_replay.py"
BUFFERS = "tests/learners/test_buffers.py"
REHEARSAL = "tests/learners/test_rehearsal.py"
DIRECTIONS = "tests/learners/test_directions.py"
PROTOTYPE = "tests/learners/test_prototype.py"
REFERENCES = "tests/learners/test_references.py"
OLORA = "tests/learners/test_olora.py"
MIGU = "tests/learners/test_migu.py"
HAT = "tests/learners/test_hat.py"
PROMPT = "tests/learners/test_prompt_tuning.py"
CHANGES = "tests/learners/test_attention_changes.py"
PROGRESSIVE = "tests/learners/test_progressive_prompts.py"
L2P = "tests/learners/test_l2p.py"
COEFFICIENTS = "tests/learners/test_coefficients.py"
COMPOSITION = "tests/learners/test_composition.py"
PUBLISHED = "tests/learners/test_published.py"
ONE_HEAD = "tests/models/test_shared_head.py"
SHARING = "tests/learners/test_shared_head.py"
LOSSES = "tests/models/test_losses.py"
ADAPTERS = "tests/models/test_adapters.py"
BF16 = "tests/models/test_bf16.py"
LOOP = "tests/training/test_loop.py"
TRAINING = "tests/training"
METRICS = "tests/metrics"
RECORD = "tests/record"
CHECKPOINT = "tests/run/test_checkpoint.py"
SELECT, GRID = "tests/run/test_select.py", "tests/tuning/test_grid.py"
ROUTING = "tests/routing"
ROUTED = "tests/evaluation/test_routed.py"

_TABLE: dict[str, tuple[tuple[str, ...], tuple[Change, ...]]] = {
    # The methods.
    "stream/learners/adapter.py": (
        (COMPOSITION, PUBLISHED, ADAPTERS, "tests/record/test_ledger.py", *contract("adapter")),
        (
            ("init_std: float = setting(1e-2", "init_std: float = setting(1e-1"),
            ('POSITIONS if self.places == "both"', 'POSITIONS[1:] if self.places == "both"'),
            ("if first <= layer <= last]", "if first < layer <= last]"),
            ("adapted.there.on = True", "pass"),
        ),
    ),
    "stream/learners/adapterfusion.py": (
        (COEFFICIENTS, COMPOSITION, PUBLISHED, ISOLATED, *contract("adapterfusion")),
        (
            ("VALUE_DECAY = 0.01", "VALUE_DECAY = 0.0"),
            (
                "return super().workload(task, training).twice()",
                "return super().workload(task, training)",
            ),
            ("requires_grad_(not self._fusing)", "requires_grad_(True)"),
            ("combined=fused)", "combined=True)"),
        ),
    ),
    "stream/learners/agem.py": (
        (COEFFICIENTS, SEQUENTIAL, *contract("agem")),
        (
            ("new = batch.new", "new = batch"),
            (".clamp(min=0)\n", "\n"),
            ("        self.model.zero_grad(set_to_none=True)\n", ""),
            ("_foreach_mul(list(reference), factor)", "_foreach_mul(list(reference), factor / 2)"),
            ("len(batch.blocks) == 1", "len(batch.blocks) > 1"),
        ),
    ),
    "stream/learners/bapna.py": (
        (PUBLISHED, ISOLATED, *contract("bapna")),
        (
            ('norm="layer"', 'norm="none"'),
            ('place.position == "feedforward"', 'place.position == "attention"'),
            ("init_std=self.init_std", "init_std=10 * self.init_std"),
        ),
    ),
    "stream/learners/bitfit.py": (
        (ISOLATED, *contract("bitfit")),
        (
            ('name.endswith("bias")', 'name.endswith("dense.bias")'),
            ('name.endswith("bias")', 'name.endswith(("as", "LayerNorm.weight"))'),
        ),
    ),
    "stream/learners/derpp.py": (
        (COEFFICIENTS, SEQUENTIAL, *contract("derpp")),
        (
            ("self.beta, dark=False", "self.alpha, dark=False"),
            ("for _ in range(2)]", "for _ in range(1)] * 2"),
        ),
    ),
    "stream/learners/diff_pruning.py": (
        (COEFFICIENTS, ISOLATED, *contract("diff_pruning")),
        (
            ("self.sparsity * opened", "opened"),
            (
                "return self.second_start(name, change).abs()",
                "return self.second_start(name, change)",
            ),
            (
                'return self.gate_lr if name.startswith("gates.") else super().learning_rate(name)',
                "return super().learning_rate(name)",
            ),
            ("math.sqrt(gates)) if", "gates) if"),
        ),
    ),
    "stream/learners/er_ace.py": (
        (REHEARSAL, *contract("er_ace")),
        (
            ("present = (labels[:, None] == classes).any(0)", "present = classes >= 0"),
            ("else loss + self.stored_loss(", "else loss + 2 * self.stored_loss("),
        ),
    ),
    "stream/learners/dora.py": (
        (CHANGES, PUBLISHED, *contract("dora")),
        (("Decomposed(m, self.rank, self.alpha)", "Decomposed(m, self.rank, self.rank)"),),
    ),
    "stream/learners/ewc.py": (
        (COEFFICIENTS, LOSSES, SEQUENTIAL, "tests/training/test_flops.py", *contract("ewc")),
        (
            (
                "add_gradient(self.shared_parameters(), self.strength * faded)",
                "add_gradient(self.shared_parameters(), self.strength * faded / 2)",
            ),
            ("faded = self.decay if self.online else 1.0", "faded = 1.0"),
            ("rows = order[: self.fisher_rows]", "rows = np.sort(order)[: self.fisher_rows]"),
            ("rows = order[: self.fisher_rows]", "rows = order[: self.fisher_rows - 1]"),
            ("            model.zero_grad(set_to_none=True)\n", ""),
            ("model.train(was_training)", "model.train()"),
            (
                "        model.sync_bf16_copy()\n",
                "",
                "each pass takes the mode and what is trained by itself, and neither changed since",
            ),
            ("if self.online:", "if not self.online:"),
        ),
    ),
    "stream/learners/finetune.py": (
        (LOOP, *contract("finetune")),
        (
            ("return True", 'return "LayerNorm" not in name'),
            ("return True", 'return "embeddings" not in name'),
        ),
    ),
    "stream/learners/frozen.py": (
        (
            PUBLISHED,
            "tests/record/test_ledger.py",
            "tests/training/test_flops.py",
            *contract("frozen"),
        ),
        (
            ("parameter_isolation=True", "parameter_isolation=False"),
            (
                "class Frozen(Learner):\n",
                "class Frozen(Learner):\n    trains = lambda self, name: 'LayerNorm' in name\n",
            ),
        ),
    ),
    "stream/learners/gem.py": (
        (REHEARSAL, *contract("gem")),
        (
            (
                "turn_aside(mine, memories, self.margin)",
                "turn_aside(mine, memories[:1], self.margin)",
            ),
            ("        self.model.zero_grad(set_to_none=True)\n", ""),
        ),
    ),
    "stream/learners/hat.py": (
        (HAT, *contract("hat")),
        (
            ("super().loss(batch) + self.c *", "super().loss(batch) +"),
            ("torch.where(free, parameter, self._before[name])", "parameter"),
            ("grad.mul_(self._protection.free[name])", "grad.mul_(1)"),
            ("(number / last if last else 1.0)", "(number / (last + 1))"),
        ),
    ),
    "stream/learners/independent.py": (
        (
            REFERENCES,
            *contract("independent"),
        ),
        (
            ("keeps_pretrained=False", "keeps_pretrained=True"),
            ("return True", 'return "embeddings" not in name'),
        ),
    ),
    "stream/learners/joint.py": (
        (
            REFERENCES,
            *contract("joint"),
        ),
        (
            ("if position == 0 else []", "if position >= 0 else []"),
            ("            self.model.heads.clear()\n", ""),
            (".copy_(first)", ".add_(0 * first)"),
            ("generator.permutation(len(steps))", "np.arange(len(steps))"),
        ),
    ),
    "stream/learners/layernorm.py": (
        (PUBLISHED, "tests/record/test_ledger.py", ISOLATED, *contract("layernorm")),
        (
            (
                "return name in self._layernorms",
                'return name in self._layernorms and "embedd" not in name',
            ),
            ("return name in self._layernorms", 'return name.endswith("LayerNorm.weight")'),
        ),
    ),
    "stream/learners/l2p.py": (
        (L2P, PUBLISHED, *contract("l2p")),
        (
            ("return loss + self.pull *", "return loss + 2 * self.pull *"),
            ("share = before / before.sum() if", "share = 1 - before / before.sum() if"),
            ("self.shared_tensors[SELECTED] +=", "self.shared_tensors[SELECTED] ="),
        ),
    ),
    "stream/learners/lora.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("lora")),
        (("LowRank(m, self.rank, self.alpha)", "LowRank(m, self.rank, 2 * self.alpha)"),),
    ),
    "stream/learners/lt_sft.py": (
        (COEFFICIENTS, ISOLATED, *contract("lt_sft")),
        (
            ("return change.abs()", "return change"),
            ("return torch.zeros_like(change)", "return change"),
        ),
    ),
    "stream/learners/lwf.py": (
        (SHARING, COEFFICIENTS, SEQUENTIAL, *contract("lwf")),
        (
            ("copy.deepcopy(head).eval()", "head.eval()"),
            ("each[:, : self._met]", "each[:, :-1]"),
            ("loss = loss + self.strength *", "loss = loss +"),
            ("self._teacher.states(batch)", "self.model.encoder.states(batch)"),
            (".square().mean(1) / 2", ".square().mean(1)"),
            ("for old in self.learned:", "for old in self.learned[:1]:"),
            (
                "if not (self.strength and self.learned)",
                "if not (self.strength and len(self.learned) > 1)",
            ),
        ),
    ),
    "stream/data/majority.py": (
        (
            REFERENCES,
            *contract("majority"),
        ),
        (
            ("minlength=task.num_outputs) + 1", "minlength=task.num_outputs) + 2"),
            ("counts / counts.sum()", "counts / len(labels)"),
        ),
    ),
    "stream/learners/ogd.py": (
        (DIRECTIONS, SHARING, *contract("ogd")),
        (
            ("flattened(gradients, headed=self.shares_head)", "flattened(gradients, headed=False)"),
            ("if not (self.shared_tensors and self.hold_steps):", "if True:"),
            ("order[: self.directions]", "order[: self.directions + 1]"),
        ),
    ),
    "stream/learners/migu.py": (
        (FAMILY_MAPS, MIGU, *contract("migu")),
        (
            (
                "shares >= torch.quantile(shares, self.masked)",
                "shares <= torch.quantile(shares, self.masked)",
            ),
            ("torch.quantile(shares, self.masked)", "torch.quantile(shares, 1 - self.masked)"),
            ("module.parameters(recurse=False)", "[self._maps[name].weight]"),
            ("parameter.ndim == 2 and not has_columns(module)", "parameter.ndim == 2"),
        ),
    ),
    "stream/learners/olora.py": (
        (COEFFICIENTS, PUBLISHED, OLORA, *contract("olora")),
        (
            ("self.orthogonality * self.overlap()", "2 * self.orthogonality * self.overlap()"),
            ("for name in earlier:", "for name in earlier[-1:]:"),
            ("(name for name in begun if name != task)", "()"),
            ("            begun.append(self._newest)\n", "            pass\n"),
            ("LowRank(changed, self.rank, self.alpha)", "LowRank(changed, self.rank, self.rank)"),
        ),
    ),
    "stream/learners/pals.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("pals")),
        (
            ("max(training.epochs - 1, 1)", "max(training.epochs, 1)"),
            ("self.attention_heads, self.activation)", "1, self.activation)"),
            ("self.attention_heads, self.activation)", 'self.attention_heads, "gelu")'),
            ('"pals", *(member.name for member in group)', '"pals"'),
        ),
    ),
    "stream/learners/parallel.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("parallel")),
        (
            ("zero_up=True", "zero_up=False"),
            ('("feedforward",))', '("attention",))'),
        ),
    ),
    "stream/learners/pfeiffer.py": (
        (PUBLISHED, ISOLATED, *contract("pfeiffer")),
        (
            ('"pfeiffer", (', '"parallel", ('),
            ('("feedforward",))', '("attention",))'),
            ("self.reduction, self.init_std)", "self.reduction, 0.0)"),
        ),
    ),
    "stream/learners/prefix_tuning.py": (
        (CHANGES, PROGRESSIVE, PUBLISHED, *contract("prefix_tuning")),
        (
            (
                "return [part for prefix in self._prefixes for part",
                "return [part for prefix in self._prefixes[::-1] for part",
            ),
        ),
    ),
    "stream/learners/progressive.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("progressive")),
        (
            ("reads_past_tasks=True", "reads_past_tasks=False"),
            ("task_names, self.size,", "task_names, 1,"),
        ),
    ),
    "stream/learners/progressive_prompts.py": (
        (PROGRESSIVE, PUBLISHED, *contract("progressive_prompts")),
        (("task_names, self.length, self.active)", "task_names, self.length + 1, self.active)"),),
    ),
    "stream/learners/prompt_tuning.py": (
        (COMPOSITION, PUBLISHED, PROMPT, *contract("prompt_tuning")),
        (
            ("SoftPrompt(encoder, self.length)", "SoftPrompt(encoder, self.length - 1)"),
            ("length: int = setting(20", "length: int = setting(19"),
        ),
    ),
    "stream/learners/prototype.py": (
        (PROTOTYPE, *contract("prototype")),
        (
            ("far = weight.square().sum(1) / 2", "far = weight.square().sum(1)"),
            ("fitted + others if kept is None else kept + (fitted + others)", "fitted + others"),
            ("HELD_OUT = 5", "HELD_OUT = 2"),
            ("bias = torch.where(sums.counts > 0, bias, Head.NEVER)", "pass"),
        ),
    ),
    "stream/learners/replay.py": (
        (COEFFICIENTS, LOSSES, REPLAY, *contract("replay")),
        (
            ("1 - 0.8 * progress", "1 - progress"),
            ("self.replayed, weights)", "self.replayed)"),
            ("sum(self.stored_losses(batch), loss)", "loss"),
            ("weights / weights.sum() if", "weights[::-1] / weights.sum() if"),
        ),
    ),
    "stream/learners/shared_adapter.py": (
        (SEQUENTIAL, PUBLISHED, *contract("shared_adapter")),
        (
            ('part: str = "adapter"', 'part: str = "encoder"'),
            ('self.part == "adapter", f"{same}', 'self.part != "", f"{same}'),
        ),
    ),
    "stream/learners/si.py": (
        (COEFFICIENTS, SEQUENTIAL, *contract("si")),
        (
            ("2 * self.strength", "self.strength"),
            ("moved, value=-1)", "moved, value=1)"),
            (".clamp(smallest)).clamp(0)", ".clamp(smallest)).abs()"),
            (".square().mean()", ".square().sum()"),
            ("importance, decay=1.0)", "importance, decay=0.5)"),
            (
                "copy_all([self._gradient[name] for name in noted], list(noted.values()))",
                "self._gradient = dict(noted)",
            ),
            (
                "copy_all(list(self._before.values()), list(shared.values()))",
                "self._before = dict(shared)",
            ),
        ),
    ),
    "stream/learners/stacked.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("stacked")),
        (
            ("Sources([names[0], task] if", "Sources([names[-2], task] if"),
            ("Sources([names[0], task] if", "Sources([task] if"),
        ),
    ),
    "stream/learners/tfidf.py": (
        (
            REFERENCES,
            *contract("tfidf"),
        ),
        (
            ("(types[:, 1:] == types[:, :-1])", "(types[:, 1:] >= 0)"),
            ("NEVER = -1e4", "NEVER = -1e1"),
        ),
    ),
    "stream/learners/topk.py": (
        (
            PUBLISHED,
            *contract("topk"),
        ),
        (
            (
                "encoder.layer_names(count - self.layers)",
                "encoder.layer_names(count - self.layers - 1)",
            ),
            ('or name.startswith("body.pooler.")', ""),
        ),
    ),
    "stream/learners/workload.py": (
        (LOOP, REFERENCES, ISOLATED, *contract("lt_sft")),
        (
            ("max(training.epochs, -(", "min(training.epochs, -("),
            (
                "2 * self.epochs, 2 * self.steps, 2 * self.examples",
                "2 * self.epochs, self.steps, 2 * self.examples",
            ),
        ),
    ),
    # What methods share.
    "stream/learners/_shared/composed.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("stacked")),
        (
            ("reads_past_tasks=True", "reads_past_tasks=False"),
            ("self.reduction, self.init_std)", "2 * self.reduction, self.init_std)"),
        ),
    ),
    "stream/learners/_shared/fitted.py": (
        (
            REFERENCES,
            *contract("majority"),
        ),
        (
            ("seeded=False", "seeded=True"),
            ("return Workload(0, 0, 0)", "return Workload(1, 1, 1)"),
        ),
    ),
    "stream/learners/_shared/quadratic.py": (
        (COEFFICIENTS, SEQUENTIAL, *contract("ewc", "si")),
        (
            ("self._stored[weight] + importance[name]", "importance[name].clone()"),
            (
                "gradient if pull is None else gradient + pull",
                "gradient if pull is None else gradient - pull",
            ),
        ),
    ),
    "stream/learners/_shared/replay_buffer.py": (
        (COEFFICIENTS, REPLAY, BUFFERS, *contract("replay")),
        (
            ("order = generator.permutation(len(train))", "order = np.arange(len(train))"),
            ('(self._seed, "memory"', '(0, "memory"'),
            ("np.sort(np.concatenate(chosen))", "np.concatenate(chosen)"),
            ("weights = weights / weights.sum()", "pass"),
        ),
    ),
    "stream/learners/_shared/held_rows.py": (
        (SEQUENTIAL, SHARING, COEFFICIENTS),
        (
            ("if self.dark else", "if not self.dark else"),
            ("each.weight * len(mixture)", "each.weight"),
            ("columns.masked_fill(places >= 0, IGNORED_LABEL)", "columns"),
        ),
    ),
    "stream/learners/_shared/replaying.py": (
        (COEFFICIENTS, REPLAY, LOSSES, *contract("replay", "derpp")),
        (
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
    ),
    "stream/learners/_shared/selection.py": (
        (BUFFERS,),
        (
            ("generator.integers(number + 1)", "generator.integers(number // 2 + 1)"),
            ("squares + 2 * along + sum_square)", "squares + along + sum_square)"),
            ("np.minimum(share, (sizes - quotas)[open_sets])", "(sizes - quotas)[open_sets]"),
        ),
    ),
    "stream/learners/_shared/cone.py": (
        (REHEARSAL,),
        (
            ("-gradient - margin * others.sum(1)", "-gradient + margin * others.sum(1)"),
            ("return margin + more", "return more"),
        ),
    ),
    "stream/learners/_shared/directions.py": (
        (DIRECTIONS, SHARING),
        (
            ("known = flat[: basis.shape[1]]", "known = flat[-basis.shape[1] :]"),
            ("known -= (basis @ known) @ basis", "known -= 0.5 * (basis @ known) @ basis"),
            ("if row.norm() > SMALLEST * size", "if True"),
        ),
    ),
    "stream/learners/_shared/sums.py": (
        (PROTOTYPE,),
        (
            ("(self._values + penalty)", "(self._values + 2 * penalty)"),
            ("- 2 * held_out.products", "- held_out.products"),
            ("more = (0, outputs - len(counts))", "more = (outputs - len(counts), 0)"),
        ),
    ),
    "stream/learners/_shared/reparameterized.py": (
        (PROGRESSIVE, *contract("progressive_prompts", "prefix_tuning")),
        (
            ("                vectors.grad = None\n", "                pass\n"),
            ("        if self.mlp:\n            self._write()", "        pass"),
        ),
    ),
    "stream/learners/_shared/sequential.py": (
        (COEFFICIENTS, PUBLISHED, SEQUENTIAL, *contract("shared_adapter", "ewc")),
        (
            ("or name in self._layernorms or super()", "or super()"),
            ("Architecture(encoder.width, self.size)", "Architecture(encoder.width, 64)"),
        ),
    ),
    "stream/learners/_shared/sparse.py": (
        (COEFFICIENTS, ISOLATED, *contract("lt_sft", "diff_pruning")),
        (
            ("self.second_start(name, change) * mask", "self.second_start(name, change)"),
            ("copy_all(parameters, [torch.where(*each) for each in chosen])", "pass"),
            ("gradient.mul_(chosen)", "pass"),
            ("p.detach() - first[name] for", "first[name] - p.detach() for"),
            ("flat.topk(", "flat.abs().topk(", "importances are sizes, never below 0"),
        ),
    ),
    "stream/learners/hooks.py": (
        (
            COEFFICIENTS,
            PUBLISHED,
            LOOP,
            OLORA,
            *contract("adapter", "replay", "progressive", "joint", "si"),
        ),
        (
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
    ),
    "stream/learners/base.py": (
        (
            COEFFICIENTS,
            PUBLISHED,
            LOOP,
            OLORA,
            *contract("adapter", "replay", "progressive", "joint", "si"),
        ),
        (
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
            ("read = set(self._serving_sources(task).names)", "read = {task}"),
            ("            self.model.rest_heads(but=task.head_name)\n", "            pass\n"),
            ("return {**model, **kept, **heads}", "return {**model, **kept}"),
        ),
    ),
    # The modules that methods rest on.
    "stream/models/modules/bottleneck.py": (
        (COMPOSITION, PUBLISHED, ADAPTERS, ISOLATED, *contract("adapter", "parallel")),
        (
            ("std=std, a=-2 * std, b=2 * std", "std=std, a=-1 * std, b=1 * std"),
            ("layer.bias.zero_()", "layer.bias.fill_(1e-3)"),
            ("range(architecture.depth - 1)", "range(architecture.depth)"),
            ("hidden = self._activate(layer(hidden))", "hidden = layer(hidden)"),
            ("functional.gelu,", "functional.relu,"),
            (
                '    def __deepcopy__(self, memo: object) -> "Switch":',
                '    def _deepcopy(self, memo: object) -> "Switch":',
            ),
        ),
    ),
    "stream/models/modules/low_rank.py": (
        (FAMILY_MAPS, COMPOSITION, PUBLISHED, ISOLATED, OLORA, CHANGES, *contract("lora", "dora")),
        (
            (".norm(dim=1)\n        stretch", ".norm(dim=0)\n        stretch"),
            ("+ stretch * self(inputs[0])", "+ self(inputs[0])"),
            ("else own - changed.bias", "else own"),
            ("with torch.no_grad():\n            product", "if True:\n            product"),
            ("self._scale = alpha / rank", "self._scale = alpha"),
            ('("value", maps.value)', '("value", maps.key)'),
            ("changed.module.register_forward_hook(change.change)", "pass"),
        ),
    ),
    "stream/models/modules/gates.py": (
        (ISOLATED, *contract("diff_pruning")),
        (
            ("math.log(-LOW / HIGH)", "math.log(-LOW)"),
            ("else a.grad + gradient", "else gradient"),
            ("opened * expected_open(self.whole)", "opened"),
            ("a.grad.mul_(factor)", "a.grad.mul_(1)"),
        ),
    ),
    "stream/models/modules/hard_attention.py": (
        (HAT, *contract("hat")),
        (
            ("(self.units > 0).to(self.units)", "torch.sigmoid(self.units)"),
            ("* attention.outputs", ""),
            ("(gate * (1 - used)).sum()", "gate.sum()"),
            ("torch.minimum(outputs[:, None], units[None, :])", "outputs[:, None]"),
            ("s_max / s * steep", "s_max * steep"),
        ),
    ),
    "stream/models/modules/magnitudes.py": (
        (MIGU, *contract("migu")),
        (
            ("/ sizes.sum(-1, keepdim=True)", "/ sizes.sum((0, 1), keepdim=True)"),
            ("(shares * counts).sum((0, 1))", "shares.sum((0, 1))"),
        ),
    ),
    "stream/models/modules/prompt.py": (
        (COMPOSITION, PUBLISHED, PROMPT, PROGRESSIVE, BF16, *contract("prompt_tuning")),
        (
            ("names = reversed(self._active.names)", "names = self._active.names"),
            (
                "torch.randperm(len(embed.weight), generator=generator)",
                "torch.arange(len(embed.weight))",
            ),
            ("copied.requires_grad_(self.vectors.requires_grad)", "copied"),
        ),
    ),
    "stream/models/modules/prefix.py": (
        (FAMILY_MAPS, CHANGES, *contract("prefix_tuning")),
        (
            ("1.0 if mask.dtype == torch.bool else 0.0", "0.0"),
            ("mask = position_bias if mask is None else mask + position_bias", "pass"),
            ('kwargs["position_bias"] = prefix.widened(bias)', "pass"),
            ("torch.tanh(scores / cap) * cap", "torch.tanh(scores / cap)"),
            ("self.dropout.p if self.training else 0.0", "0.0"),
        ),
    ),
    "stream/models/modules/prompt_pool.py": (
        (L2P, *contract("l2p")),
        (
            ("largest=False", "largest=True"),
            ("distances.gather(1, taken).sum(1)", "distances.gather(1, taken).mean(1)"),
            ("if self.training and penalty is not None:", "if penalty is not None:"),
        ),
    ),
    "stream/models/modules/reparameterization.py": (
        (PROGRESSIVE,),
        (("[self.base + self.up(", "[self.up("),),
    ),
    "stream/models/modules/rescaling.py": (
        (FAMILY_MAPS, CHANGES, *contract("ia3")),
        (
            ("self._part.of(output) * self.factors", "self._part.of(output) * (2 - self.factors)"),
            ("inputs[0] * self.factors", "inputs[0] * (2 - self.factors)"),
        ),
    ),
    "stream/models/modules/composition.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("adapterfusion", "stacked")),
        (
            ("h = f + self.added(task, h)", "h = h + self.added(task, h)"),
            ("self.fusion(f, torch.stack(", "self.fusion(h, torch.stack("),
            ("self._norm(f + source)", "self._norm(f)"),
            ("self.added(self.active.names[-1], h)", "self.added(self.active.names[0], h)"),
        ),
    ),
    "stream/models/places.py": (
        ("tests/models/test_linear_maps.py", FAMILY_MAPS),
        (
            ("change.reshape(parts[0].shape)", "0 * change.reshape(parts[0].shape)"),
            ("else own - self.added", "else own"),
        ),
    ),
    "stream/models/masks.py": (
        ("tests/models/test_linear_maps.py",),
        (("places(tokens), None, causal=True)", "places(tokens), None, causal=False)"),),
    ),
    "stream/models/modules/columns.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("progressive")),
        (
            ("* self.scales[:count]", ""),
            ("column.lateral(self._inputs[:place])", "column.lateral(self._inputs[:1])"),
            ("else hidden[-1]\n", "else hidden[0]\n"),
        ),
    ),
    "stream/models/modules/projected_attention.py": (
        (COMPOSITION, PUBLISHED, ISOLATED, *contract("pals")),
        (
            ("(h, self._reading.readable())", "(h, None)"),
            (
                "return self._activate(self.projections.decode(inner))",
                "return self._activate(self.projections.decode(inner)) + hidden",
            ),
        ),
    ),
    "stream/models/losses.py": (
        (LOSSES, REPLAY, "tests/data/test_batching.py", *contract("replay")),
        (
            ("logits.masked_fill(owners != own[:, None], Head.NEVER)", "logits"),
            ('reduction="sum") / 2', 'reduction="sum")'),
            ("(place < spans[:, 3:4])", "(place <= spans[:, 3:4])"),
        ),
    ),
    "stream/models/task_model.py": (
        (ONE_HEAD, COEFFICIENTS, LOOP, BF16, *contract("adapter")),
        (
            ("logits.masked_fill(~seen, Head.NEVER)", "logits"),
            ("self._draw(row, name)", "self._draw(row, str(met))"),
            ("self.dropout(texts.float())", "texts.float()"),
            ("                del self.heads[task.name]\n", "                pass\n"),
        ),
    ),
    "stream/models/precision.py": (
        (BF16, COEFFICIENTS, LOOP),
        (
            ("            self._computes.read_trained()\n", "            pass\n"),
            (
                "self._computes, self._took = self._half, not torch.is_grad_enabled()",
                "self._computes, self._took = self._half, True",
            ),
            ("            self._half.read_all()\n", "            pass\n"),
        ),
    ),
    "stream/models/deterministic.py": (
        ("tests/models/test_embeddings.py", "tests/models/test_repeatable_attention.py"),
        (
            ('torch.set_deterministic_debug_mode("error")', "pass"),
            ("        torch.set_deterministic_debug_mode(mode)\n", "        pass\n"),
            ("        FILLING.fill_uninitialized_memory = filled\n", ""),
        ),
    ),
    "stream/models/embeddings.py": (
        ("tests/models/test_embeddings.py",),
        (
            ("with deterministic():", "if True:"),
            ("                ctx.padding,\n", "                NO_PADDING,\n"),
            ("given.float() if _is_short(given) else given", "given"),
            ("if not READ_AT_ONCE < number <= FEW:", "if not READ_AT_ONCE <= number < FEW:"),
            ("    more = FEW + 1 - number\n", "    more = FEW - number\n"),
            ("inner.__class__ = RepeatableEmbedding", "pass"),
        ),
    ),
    "stream/models/repeatable_attention.py": (
        ("tests/models/test_repeatable_attention.py",),
        (
            ("self._asked.enter_context(deterministic())", "None"),
            (
                "                node.register_hook(lambda inputs, outputs: self._asked.close())\n",
                "",
            ),
            ('KERNELS = "ScaledDotProduct"', 'KERNELS = "Flash"'),
            ("with ExitStack() as asked, _Asking(asked):", "with _Asking(ExitStack()):"),
        ),
    ),
    "stream/models/bf16.py": (
        (COEFFICIENTS, BF16, *contract("adapter", "finetune")),
        (
            ("gradient.add_(earlier)", "pass"),
            ("self.encoder.train(self._original.training)", "self.encoder.train()"),
        ),
    ),
    "stream/models/sparse_parameters.py": (
        (COEFFICIENTS, ISOLATED, *contract("lt_sft")),
        (
            ("tensor.detach() - self.first[name]", "self.first[name] - tensor.detach()"),
            ("{name: self.first.get(name, tensor) for", "{name: tensor for"),
            ("int(places.max()) < size", "int(places.max()) <= size"),
        ),
    ),
    "stream/models/task_parameters.py": (
        (*contract("adapter", "independent"),),
        (
            (
                "before = self._named(self._block(self.working))",
                "before = dict(self.working)",
            ),
            (
                "        self._show(values)\n        self.active = task",
                "        self.active = task",
            ),
        ),
    ),
    # How a task is learned.
    "stream/training/loop.py": (
        (
            TRAINING,
            *contract("adapter", "si"),
        ),
        (
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
    ),
    "stream/training/schedule.py": (
        (TRAINING,),
        (
            ("parameter.ndim >= 2", "parameter.ndim >= 1"),
            ("eps=1e-6, foreach=True", "eps=1e-8, foreach=True"),
        ),
    ),
    "stream/training/fit_state.py": (
        (
            TRAINING,
            *contract("adapter", "lt_sft", "replay"),
        ),
        (
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
    ),
    "stream/training/snapshot.py": (
        (
            TRAINING,
            *contract("adapter", "replay"),
        ),
        (
            ('("step", "exp_avg", "exp_avg_sq")', '("step", "exp_avg")'),
            ('    torch.set_rng_state(tensors[f"{of_rank}random.cpu"])\n', ""),
            ("min(len(stored), len(into))", "min(len(stored), len(into)) - 1"),
        ),
    ),
    "stream/training/flops.py": (
        ("tests/training/test_flops.py",),
        (
            ("rows = tuple((p.task.name, p.stop", 'rows = tuple(("", p.stop'),
            ("tuple(p.requires_grad for p in self._model.parameters())", "()"),
            ("    with preserved_rng_state():\n", "    if True:\n"),
        ),
    ),
    "stream/training/captured.py": (
        (
            TRAINING,
            BF16,
        ),
        (
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
        ),
    ),
    "stream/training/engine.py": (
        (
            TRAINING,
            BF16,
        ),
        (
            ('if wanted == "eager":', 'if wanted == "captured":'),
            (
                'learner.overrides("after_backward") and not learner.tags.cuda_graph_safe:',
                'learner.overrides("after_step") and not learner.tags.cuda_graph_safe:',
            ),
        ),
    ),
    "stream/training/capture_guard.py": (
        (TRAINING,),
        (
            ("        vars(self._learner).update(before)\n", ""),
            ("return tuple(map(_described, value))", "return len(value)"),
        ),
    ),
    # Which task a text belongs to.
    "stream/routing/statistics.py": (
        (ROUTING,),
        (
            ("self._counts * counts / together", "counts / together"),
            ("self._means += change *", "self._means += 0.9 * change *"),
        ),
    ),
    "stream/routing/class_mean.py": (
        (ROUTING,),
        (("own - 2 * features @", "own - features @"),),
    ),
    "stream/routing/mahalanobis.py": (
        (ROUTING,),
        (
            ("(1 - share) * whole", "whole"),
            ('/ int(self.shared["rows"])', "/ len(self.tasks)"),
            ('self.shared["scatter"] + scatter', "scatter"),
        ),
    ),
    "stream/routing/entropy.py": (
        (ROUTING,),
        (("np.log(logits.shape[1])", "np.log(2)"),),
    ),
    "stream/routing/confidence.py": (
        (ROUTING,),
        (("-np.asarray(logsumexp", "np.asarray(logsumexp"),),
    ),
    "stream/routing/features.py": (
        (ROUTED,),
        (
            ("(tokens.float() * mask)", "tokens.float()"),
            ("elif name in inside and not learner.is_shared(name)", "elif name in inside"),
        ),
    ),
    "stream/evaluation/foreign.py": (
        ("tests/evaluation/test_foreign.py",),
        (
            ("judged[group.rows] = 0", "judged[group.rows] *= 0.5"),
            ("(low + high) / 2, np.float32", "low, np.float32"),
            ("0 if task.is_regression else 1", "0"),
        ),
    ),
    "stream/evaluation/routed.py": (
        (ROUTED,),
        (
            ("known[0] == mark", "known[0] is not None"),
            ("names <= set(group)", "names & set(group)"),
        ),
    ),
    # What is told of a run.
    "stream/metrics/scores.py": (
        (METRICS,),
        (
            ("matrix[k - 1, :k]", "matrix[k - 1, : k - 1]"),
            ("diagonal=True", "diagonal=False"),
        ),
    ),
    "stream/metrics/transfer.py": (
        (METRICS,),
        (
            ("sign(direction) * (retained - learned)", "sign(direction) * (learned - retained)"),
            ("max(change, 0.0)", "change"),
        ),
    ),
    "stream/metrics/retention.py": (
        (METRICS,),
        (
            ("0.0 - change", "change"),
            ("if k < 2:", "if k < 1:"),
        ),
    ),
    "stream/metrics/references.py": (
        (METRICS,),
        (
            ("if mean > 0 else None", "if mean != 0 else None"),
            ("counted = room > 0", "counted = room >= 0"),
            (").mean()) - 1, int", ").mean()), int"),
            ("sign(direction) * gaps.mean()", "gaps.mean()"),
        ),
    ),
    "stream/metrics/within_task.py": (
        (METRICS,),
        (
            ("score_curve(points, j, j + 1, k)", "score_curve(points, j, j, k)"),
            ("range(1, min(window, len(scores)))", "range(1, min(window + 1, len(scores)))"),
        ),
    ),
    "stream/metrics/flips.py": (
        (METRICS,),
        (
            ("errors = wrong.sum(axis=1)", "errors = (~old).sum(axis=1)"),
            ("flips / new.shape[1]", "flips / new.shape[0]"),
            ("(examples + 7) // 8", "examples // 8"),
        ),
    ),
    "stream/metrics/cost.py": (
        (METRICS,),
        (
            ("one_pass * epsilon / spent", "one_pass / spent"),
            ("if (epsilon < 1).any()", "if (epsilon < 0).any()"),
        ),
    ),
    "stream/metrics/cells.py": (
        (METRICS,),
        (
            ("scores[: rows_done(matrix)], what)", "scores, what)"),
            ("0 if diagonal else -1", "0 if diagonal else -2"),
        ),
    ),
    "stream/metrics/catalogue.py": (
        (METRICS,),
        (
            ('"bwt": backward_transfer,', '"bwt": backward_transfer_diaz,'),
            ("WINDOW = 10", "WINDOW = 5"),
        ),
    ),
    "stream/record/matrix.py": (
        (RECORD,),
        (
            ("range(max(last, 0))", "range(max(last - 1, 0))"),
            (
                "(self.cells[j][j], self.cells[last][j])",
                "(self.cells[last][j], self.cells[last][j])",
            ),
        ),
    ),
    "stream/record/ledger.py": (
        (RECORD,),
        (
            ("trained / self.base_parameters", "trained / self.encoder_layer_parameters"),
            ("trained / self.encoder_layer_parameters", "trained / self.base_parameters"),
            ("stored_bytes=stored[1]", "stored_bytes=stored[0]"),
            (
                "self.total_multiple = stored[0] / self.base_parameters",
                "self.total_multiple = 1 + stored[0] / self.base_parameters",
            ),
        ),
    ),
    "stream/record/derived.py": (
        (RECORD,),
        (
            (
                "model=[row.stored_bytes for row in rows]",
                "model=[row.stored_parameters for row in rows]",
            ),
            (
                "buffer=[row.buffer_bytes for row in rows]",
                "buffer=[row.buffer_examples for row in rows]",
            ),
            ("baseline=record.baseline", "baseline=None"),
            ("np.maximum(np.append", "np.minimum(np.append"),
        ),
    ),
    "stream/record/parts.py": (
        (RECORD,),
        (("self.train_s += seconds", "self.train_s = seconds"),),
    ),
    "stream/record/rows.py": (
        (RECORD,),
        (
            ("range(start, stop)", "range(start, stop - 1)"),
            ("        record.losses[name] = found.losses\n", "        pass\n"),
            ("    record.timing.now(row.totals)\n", ""),
            ("fingerprints=dict(fingerprints)", "fingerprints={}"),
            ("points[-1].task >= index", "points[-1].task > index"),
        ),
    ),
    "stream/record/run_record.py": (
        (RECORD,),
        (
            ("above[on] = newest[0], cell", "above[on] = index, cell"),
            ("[len(self.ledger.tasks) :]", "[len(self.ledger.tasks) + 1 :]"),
            ("            self.derive()\n", ""),
        ),
    ),
    "stream/atomic_io.py": (
        ("tests/test_atomic_io.py",),
        (
            ("            file.truncate(self._size)\n", ""),
            ('.split(b"\\n")[:-1]\n    if', '.split(b"\\n")\n    if'),
            ("            self._size += len(line)\n", "            self._size += len(line) - 1\n"),
        ),
    ),
    "stream/run/checkpoint.py": (
        (CHECKPOINT,),
        (
            ("GENERATIONS_KEPT = 2", "GENERATIONS_KEPT = 1"),
            ("if hashlib.sha256(text).hexdigest() != digest:", "if not digest:"),
            ("if hashlib.sha256(data).hexdigest() != path.stem:", "if not data:"),
            ("        self._collect_garbage(generation, {*digests.values(), document})\n", ""),
            ("self._known - used - self._final_digests", "self._known - used"),
            ('                "rows": rows,\n', '                "rows": None,\n'),
            ("max(self.generations(), default=0) + 1", "max(self.generations(), default=0) + 2"),
            ("tensor.detach().cpu().contiguous()", "tensor.detach().cpu().contiguous().float()"),
        ),
    ),
    "stream/run/checkpoint_manager.py": (
        (
            CHECKPOINT,
            *contract("adapter", "replay"),
        ),
        (
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
    ),
    "stream/record/selection.py": (
        (SELECT,),
        (("if c.score == max(scores))", "if c.score == min(scores))"),),
    ),
    "stream/run/selecting.py": (
        (SELECT,),
        (
            ("candidate.seed(self.seed))", "self.seed)"),
            ("            parameter.data = parameter.data.clone()\n", "            pass\n"),
            ("if k not in READ_BY_OPTIMIZER}", "if k != 'size'}"),
            ("tensor.detach().clone() for name", "tensor.detach() for name"),
        ),
    ),
    "stream/run/choosing.py": (
        (SELECT,),
        (("        sum(c.steps for c in tried),\n", "        tried[-1].steps,\n"),),
    ),
    "stream/run/fitting.py": (
        (SELECT,),
        (
            ('SPLIT = "validation"', 'SPLIT = "test"'),
            ("            self.learner.forget(self._task)\n", "            pass\n"),
            ("waiting.pop(self._number, None)", "waiting.pop(0, None)"),
        ),
    ),
    "stream/tuning/grid.py": (
        (GRID,),
        (
            ("not in points:", "in points:"),
            ("self._most - len(so_far.trials) - len(found)", "self._most - len(found)"),
        ),
    ),
    "stream/tuning/record.py": (
        (GRID,),
        (
            ("(sign * (t.score or 0.0), -t.number)", "(sign * (t.score or 0.0), t.number)"),
            ("complete = len(scores) == len(runs)", "complete = bool(scores)"),
        ),
    ),
    "stream/tuning/space.py": (
        (GRID,),
        (("edge * ratio**sign", "edge * ratio"),),
    ),
    "stream/config/parts.py": (
        ("tests/config/test_streams.py",),
        (
            (
                "ordered = [labels[int(at)] for at in order]",
                "ordered = [labels[at] for at in sorted(order.tolist())]",
            ),
        ),
    ),
    "stream/data/build.py": (
        ("tests/config/test_streams.py",),
        (
            (
                "return [by_name[name] for name in published[order]]",
                "return [by_name[name] for name in by_name]",
            ),
        ),
    ),
    "stream/data/prepare/cutting.py": (
        ("tests/data/test_cutting.py",),
        (
            ("kept = np.flatnonzero(new >= 0)", "kept = np.flatnonzero(new > 0)"),
            ("whole.lines[split][new < 0]", "whole.lines[split][new < 1]"),
            ("repeats(rows.keys, rows.labels)", "repeats(rows.keys, rows.keys)"),
        ),
    ),
    "stream/data/prepare/samples.py": (
        ("tests/data/test_samples.py",),
        (
            ("taken = members[:per_class]", "taken = members[: per_class and 2 * per_class]"),
            ("keys = rows.keys if seed is None else _mixed(rows.keys, seed)", "keys = rows.keys"),
        ),
    ),
    "stream/run/accounting.py": (
        ("tests/run/test_accounting.py",),
        (
            ("            and after + 1 < len(run.tasks)\n", ""),
            ("self.looked_at = [*earlier, newest]", "self.looked_at = [newest]"),
        ),
    ),
    "stream/run/stored.py": (
        contract("adapter", "lt_sft", "progressive"),
        (
            ("for task in tasks[self._tasks :]:", "for task in tasks:"),
            (
                "            self._common |= {id(t): t for",
                "            self._common = {id(t): t for",
            ),
        ),
    ),
    "stream/fingerprint.py": (
        ("tests/test_fingerprint.py",),
        (
            ("tensor.dtype, tensor.shape, tensor.stride())", "tensor.dtype, tensor.shape)"),
            ("None if tensor.is_inference() else tensor._version", "None"),
            ("tensor.detach(), tensor_digest(tensor)", "tensor[:0], tensor_digest(tensor)"),
            ("{tensor.dtype} {tuple(tensor.shape)} ", "{tuple(tensor.shape)} "),
            (
                "json.dumps([digests, evidence], sort_keys=True)",
                "json.dumps([sorted(digests.values()), evidence])",
            ),
        ),
    ),
}

MUTANTS = tuple(
    Mutant(file, change[0], change[1], tests, *change[2:])
    for file, (tests, changes) in _TABLE.items()
    for change in changes
)
