"""The mutants of `benchmarks.stress.mutation`: constants, signs, arguments, dropped calls.

Each is one change of one file that computes something else. The tests named with a file are those
that should notice, cheap ones first; ``path[NAME]`` are the tests of one learner in a file.
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks import ROOT

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
ISOLATED = "tests/learners/test_isolated.py"
REPLAY = "tests/learners/test_replay.py"
REFERENCES = "tests/learners/test_references.py"
OLORA = "tests/learners/test_olora.py"
PROMPT = "tests/learners/test_prompt_tuning.py"
ADAPTERS = "tests/models/test_adapters.py"
BF16 = "tests/models/test_bf16.py"
TRAINING = "tests/training"
METRICS = "tests/metrics"
RECORD = "tests/record"
CHECKPOINT = "tests/run/test_checkpoint.py"

_TABLE: dict[str, tuple[tuple[str, ...], tuple[Change, ...]]] = {
    # The methods.
    "stream/learners/adapter.py": (
        (ADAPTERS, "tests/record/test_ledger.py", *contract("adapter")),
        (
            ("return name in self._layernorms or super()", "return super()"),
            ("init_std: float = 1e-2", "init_std: float = 1e-1"),
            ('POSITIONS if self.places == "both"', 'POSITIONS[1:] if self.places == "both"'),
            ("self.depth, self.norm, self.init_std", "1, self.norm, self.init_std"),
            ("if first <= layer <= last]", "if first < layer <= last]"),
            ("adapted.there.on = True", "pass"),
        ),
    ),
    "stream/learners/adapterfusion.py": (
        (ISOLATED, *contract("adapterfusion")),
        (
            ("VALUE_DECAY = 0.01", "VALUE_DECAY = 0.0"),
            ("loss = loss + VALUE_DECAY", "loss = loss - VALUE_DECAY"),
            ("- identity) ** 2).sum()", "- identity) ** 2).mean()"),
            (
                "return super().workload(task, training).twice()",
                "return super().workload(task, training)",
            ),
            ("requires_grad_(not self._fusing)", "requires_grad_(True)"),
            ("        self.model.sync_bf16_copy()\n", ""),
            ("combined=fused)", "combined=True)"),
            (
                "        self._fusing = False\n        self.active.show(",
                "        self.active.show(",
            ),
        ),
    ),
    "stream/learners/agem.py": (
        (SEQUENTIAL, *contract("agem")),
        (
            ("new = batch.only(slice(0, 1))", "new = batch"),
            (".clamp(min=0)\n", "\n"),
            ("if len(batch.parts) > 1 else None", "if len(batch.parts) > 2 else None"),
            ("        self.model.zero_grad(set_to_none=True)\n", ""),
            ("parameter.grad = gradient", "pass"),
            ("in self.shared_parameters().values()", "in self.trained_parameters().values()"),
            ("return name == task.name", "return name == task.name or len(self.learned) > 0"),
            ("g.add_(factor * r)", "g.add_(factor * r, alpha=0.5)"),
            ("self.pad_id, self.replayed)", "self.pad_id, self.replayed // 2)"),
        ),
    ),
    "stream/learners/bapna.py": (
        (ISOLATED, *contract("bapna")),
        (
            ('"relu", norm="layer"', '"gelu", norm="layer"'),
            ('norm="layer"', 'norm="none"'),
            ('place.position == "feedforward"', 'place.position == "attention"'),
            ("init_std=self.init_std", "init_std=10 * self.init_std"),
        ),
    ),
    "stream/learners/bitfit.py": (
        (ISOLATED, *contract("bitfit")),
        (
            ('name.endswith(".bias")', 'name.endswith("dense.bias")'),
            ('name.endswith(".bias")', 'name.endswith("as") or name.endswith("LayerNorm.weight")'),
        ),
    ),
    "stream/learners/derpp.py": (
        (SEQUENTIAL, *contract("derpp")),
        (
            ("self.alpha * self._moved", "self._moved"),
            ("return loss + self.beta *", "return loss + self.alpha *"),
            ("self._dark = draws[0]", "self._dark = draws[1]"),
            ("        model.eval()\n", ""),
            ("        model.train()\n", ""),
            ("square.sum(1) / real.sum(1)", "square.sum(1)"),
            ("return torch.cat(changes).mean()", "return torch.cat(changes).sum()"),
            ("[rows, :width]", "[: len(rows), :width]"),
            ("now[:, :width] - before, 0.0) ** 2", "now[:, :width] - before, 0.0).abs()"),
            ("for _ in range(2)]", "for _ in range(1)] * 2"),
            ('"derpp", task.name, epoch.index)', '"derpp", task.name)'),
        ),
    ),
    "stream/learners/diff_pruning.py": (
        (ISOLATED, *contract("diff_pruning")),
        (
            ("self.sparsity * opened", "opened"),
            ("parameter.grad.mul_(self._drawn[name])", "pass"),
            ("pass_on(parameter.grad * change)", "pass_on(parameter.grad)"),
            (
                "return self.second_start(name, change).abs()",
                "return self.second_start(name, change)",
            ),
            ("gates.reset(self.gate_start)", "gates.reset(0.0)"),
            ("draw(middle=True) * change", "draw() * change"),
            ("first[name] + change)", "first[name] + self._drawn[name] * change)"),
        ),
    ),
    "stream/learners/ewc.py": (
        (SEQUENTIAL, "tests/training/test_flops.py", *contract("ewc")),
        (
            (
                "add_gradient(self.shared_parameters(), self.strength)",
                "add_gradient(self.shared_parameters(), self.strength / 2)",
            ),
            ("value=1 / len(rows))", "value=1 / len(split))"),
            ("        model.eval()\n", ""),
            ("0.5 if task.is_regression", "1.0 if task.is_regression"),
            ("2.0 if task.is_span", "1.0 if task.is_span"),
            ("rows = order[: self.fisher_rows]", "rows = np.sort(order)[: self.fisher_rows]"),
            ("rows = order[: self.fisher_rows]", "rows = order[: self.fisher_rows - 1]"),
            ("            model.zero_grad(set_to_none=True)\n", ""),
            ("replace(values, fisher, self.decay)", "replace(values, fisher, 1.0)"),
            ("model.train(was_training)", "model.train()"),
            ("        model.sync_bf16_copy()\n", ""),
            ("if self.online:", "if not self.online:"),
            ('"fisher", task.name)', '"fisher")'),
        ),
    ),
    "stream/learners/finetune.py": (
        (SEQUENTIAL, TRAINING, *contract("finetune")),
        (
            ("return True", 'return "LayerNorm" not in name'),
            ("return True", 'return "embeddings" not in name'),
        ),
    ),
    "stream/learners/frozen.py": (
        ("tests/record/test_ledger.py", "tests/training/test_flops.py", *contract("frozen")),
        (
            ("parameter_isolation=True", "parameter_isolation=False"),
            (
                "class Frozen(Learner):\n",
                "class Frozen(Learner):\n    trains = lambda self, name: name.endswith('LayerNorm.bias')\n",
            ),
        ),
    ),
    "stream/learners/independent.py": (
        (REFERENCES, *contract("independent")),
        (
            ("keeps_pretrained=False", "keeps_pretrained=True"),
            ("return True", 'return "embeddings" not in name'),
        ),
    ),
    "stream/learners/joint.py": (
        (REFERENCES, *contract("joint")),
        (
            ("[: position + 1]", "[: position]"),
            ("if position == 0 else []", "if position >= 0 else []"),
            ("            self.model.heads.clear()\n", ""),
            (".copy_(first)", ".add_(0 * first)"),
            ("generator.permutation(len(steps))", "np.arange(len(steps))"),
            (
                "group = sorted(self._group(task), key=lambda member: member.name)",
                "group = self._group(task)",
            ),
            ("epoch.training).epochs", "epoch.training).epochs - 1"),
            ("self.model.requires_grad_(requires_grad=False)", "pass"),
            ("self.seed, index)", "self.seed, 0)"),
            ("passes=own)", "passes=None)"),
        ),
    ),
    "stream/learners/layernorm.py": (
        ("tests/record/test_ledger.py", ISOLATED, *contract("layernorm")),
        (
            (
                "return name in self._layernorms",
                'return name in self._layernorms and "embedd" not in name',
            ),
            ("return name in self._layernorms", 'return name.endswith("LayerNorm.weight")'),
        ),
    ),
    "stream/learners/lora.py": (
        (ISOLATED, *contract("lora")),
        (
            (
                "LowRank(module, self.rank, self.alpha)",
                "LowRank(module, self.rank, 2 * self.alpha)",
            ),
            (
                "LowRank(module, self.rank, self.alpha)",
                "LowRank(module, self.rank + 1, self.alpha)",
            ),
            ("module.register_forward_hook(change.change)", "pass"),
        ),
    ),
    "stream/learners/lt_sft.py": (
        (ISOLATED, *contract("lt_sft")),
        (
            ("return change.abs()", "return change"),
            ("return torch.zeros_like(change)", "return change"),
        ),
    ),
    "stream/learners/lwf.py": (
        (SEQUENTIAL, *contract("lwf")),
        (
            ("loss = loss + self.strength *", "loss = loss +"),
            ("self._teacher.states(batch)", "self.model.encoder.states(batch)"),
            ("        self._teacher.eval().to(", "        self._teacher.to("),
            ("(now / temperature)", "(now)"),
            ("(before / temperature)", "(before)"),
            (".square().mean(1) / 2", ".square().mean(1)"),
            ("for old in self.learned:", "for old in self.learned[:1]:"),
            ("for each in (states, before)", "for each in (before, states)"),
            (
                "        self.fit_tensors.update({name: named[name] for name in self.shared_parameters()})\n",
                "",
            ),
            ("ends = 2 if task.is_span", "ends = 1 if task.is_span"),
            (
                "if not (self.strength and self.learned)",
                "if not (self.strength and len(self.learned) > 1)",
            ),
            ("temperature: float = 2.0", "temperature: float = 1.0"),
        ),
    ),
    "stream/learners/majority.py": (
        (REFERENCES, *contract("majority")),
        (
            ("minlength=task.num_outputs) + 1", "minlength=task.num_outputs) + 2"),
            ("counts / counts.sum()", "counts / len(labels)"),
            ("labels.mean(dtype=np.float64, keepdims=True)", "np.median(labels, keepdims=True)"),
        ),
    ),
    "stream/learners/olora.py": (
        (OLORA, *contract("olora")),
        (
            ("self.orthogonality * self.overlap()", "2 * self.orthogonality * self.overlap()"),
            (".square().sum()", ".abs().sum()"),
            ("for name in earlier:", "for name in earlier[-1:]:"),
            ("return Sources([*others, task])", "return Sources([task])"),
            ("change.pair(newest).down.weight", "change.pair(newest).down.weight.detach()"),
            ("LowRank(module, self.rank, self.alpha)", "LowRank(module, self.rank, self.rank)"),
        ),
    ),
    "stream/learners/pals.py": (
        (ISOLATED, *contract("pals")),
        (
            ("(1 - 0.8 * progress)", "(1 - 0.5 * progress)"),
            ("max(training.epochs - 1, 1)", "max(training.epochs, 1)"),
            ("            self.active.show(self.sources(member.name))\n", ""),
            ("task, batch_size, self.seed, epoch)", "task, batch_size, self.seed, 0)"),
            ("self.attention_heads, self.active)", "1, self.active)"),
            ('"pals", *(member.name for member in group)', '"pals"'),
        ),
    ),
    "stream/learners/parallel.py": (
        (ISOLATED, *contract("parallel")),
        (
            ("zero_up=True", "zero_up=False"),
            ("scale=self.scale", "scale=1.0"),
            ('("feedforward",))', '("attention",))'),
            ('"parallel", (', '"sequential", ('),
        ),
    ),
    "stream/learners/pfeiffer.py": (
        (ISOLATED, *contract("pfeiffer")),
        (
            ('"pfeiffer", (', '"parallel", ('),
            ('("feedforward",))', '("attention",))'),
            ("self.reduction, self.init_std)", "self.reduction, 0.0)"),
        ),
    ),
    "stream/learners/progressive.py": (
        (ISOLATED, *contract("progressive")),
        (
            ("reads_past_tasks=True", "reads_past_tasks=False"),
            ("task_names, self.size,", "task_names, 1,"),
        ),
    ),
    "stream/learners/prompt_tuning.py": (
        (PROMPT, *contract("prompt_tuning")),
        (
            ("self.length), self.length)", "self.length), self.length - 1)"),
            ("length: int = 20", "length: int = 19"),
        ),
    ),
    "stream/learners/replay.py": (
        (REPLAY, *contract("replay")),
        (
            ("1 - 0.8 * progress", "1 - progress"),
            ('"sqrt": 0.5', '"sqrt": 2.0'),
            ("max(epoch.count - 1, 1)", "max(epoch.count, 1)"),
            ("return loss / batch.size", "return loss / batch.parts[0].stop"),
            ("self.replayed, weights)", "self.replayed)"),
            ("summed_loss(batch.spans, self.model(batch.spans))", "0"),
            ("weights / weights.sum() if", "weights[::-1] / weights.sum() if"),
        ),
    ),
    "stream/learners/shared_adapter.py": (
        (SEQUENTIAL, *contract("shared_adapter")),
        (
            ('part: str = "adapter"', 'part: str = "encoder"'),
            ('self.part == "adapter", f"{same}', 'self.part != "", f"{same}'),
        ),
    ),
    "stream/learners/si.py": (
        (SEQUENTIAL, *contract("si")),
        (
            ("2 * self.strength", "self.strength"),
            ("addcmul_(gradient, moved, value=-1)", "addcmul_(gradient, moved, value=1)"),
            ("moved[name] ** 2 + self.xi", "moved[name].abs() + self.xi"),
            ("(moved[name] ** 2 + self.xi)", "(moved[name] ** 2 + 2 * self.xi)"),
            (").clamp(0) for", ").abs() for"),
            ("importance, decay=1.0)", "importance, decay=0.5)"),
            ("p.grad.clone() for", "p.grad for"),
            ("shared[name].detach().clone() for", "shared[name].detach() for"),
            ("        self.penalty.begin(shared)\n", ""),
            ("xi: float = 0.1", "xi: float = 0.01"),
            (
                '        self.fit_tensors.update({f"path.{name}": path for name, path in self._path.items()})\n',
                "",
            ),
        ),
    ),
    "stream/learners/stacked.py": (
        (ISOLATED, *contract("stacked")),
        (
            ("Sources([names[0], task] if", "Sources([names[-2], task] if"),
            ("Sources([names[0], task] if", "Sources([task] if"),
        ),
    ),
    "stream/learners/tfidf.py": (
        (REFERENCES, *contract("tfidf")),
        (
            ("C=1 / penalty", "C=penalty"),
            ("Ridge(alpha=penalty)", "Ridge(alpha=1.0)"),
            (
                'normalize(counts.multiply(state["idf"].numpy()).tocsr())',
                'counts.multiply(state["idf"].numpy()).tocsr()',
            ),
            ("(types[:, 1:] == types[:, :-1])", "(types[:, 1:] >= 0)"),
            ("np.argsort(-counts", "np.argsort(counts"),
            ("known = terms[column] == found.term", "known = terms[column] >= 0"),
            ("train.labels[np.concatenate(order)]", "train.labels"),
            ("NEVER = -1e4", "NEVER = -1e1"),
        ),
    ),
    "stream/learners/topk.py": (
        (*contract("topk"),),
        (
            (
                "encoder.layer_names(count - self.layers)",
                "encoder.layer_names(count - self.layers - 1)",
            ),
            ("encoder.layer_names(count - self.layers)", "encoder.layer_names(self.layers)"),
            ('or name.startswith("body.pooler.")', ""),
            ("self.layers <= count", "self.layers < count"),
        ),
    ),
    "stream/learners/workload.py": (
        (TRAINING, REFERENCES, ISOLATED, *contract("lt_sft")),
        (
            ("return 2 * self.index >= self.count", "return 2 * self.index > self.count"),
            ("steps = -(-rows // training.batch_size)", "steps = rows // training.batch_size"),
            ("max(training.epochs, -(", "min(training.epochs, -("),
            ("epochs, epochs * steps, epochs * rows)", "epochs, epochs * steps, rows)"),
            (
                "2 * self.epochs, 2 * self.steps, 2 * self.examples",
                "2 * self.epochs, self.steps, 2 * self.examples",
            ),
        ),
    ),
    # What methods share.
    "stream/learners/_shared/composed.py": (
        (ISOLATED, *contract("stacked")),
        (
            ("reads_past_tasks=True", "reads_past_tasks=False"),
            ('place.position == "feedforward"', 'place.position == "attention"'),
            ("self.reduction, self.init_std)", "2 * self.reduction, self.init_std)"),
        ),
    ),
    "stream/learners/_shared/fitted.py": (
        (REFERENCES, *contract("majority")),
        (
            ("sum(task.spec.score_range) / 2", "sum(task.spec.score_range)"),
            ("seeded=False", "seeded=True"),
            ("return Workload(0, 0, 0)", "return Workload(1, 1, 1)"),
        ),
    ),
    "stream/learners/_shared/quadratic.py": (
        (SEQUENTIAL, *contract("ewc", "si")),
        (
            ("moved if before is None else moved + before", "moved"),
            ("self._stored[weight] + importance[name]", "importance[name].clone()"),
            ("decay * before + new", "before + new"),
            ("* (value.detach() - self.anchor(name))", "* (self.anchor(name) - value.detach())"),
            ("* (value - self.anchor(name))", "* value"),
            ("alpha=strength", "alpha=1.0"),
            (
                'self._working[f"{self._anchor}.{name}"] = value.detach().clone()',
                'self._working[f"{self._anchor}.{name}"] = value.detach()',
            ),
            (
                "gradient if pull is None else gradient + pull",
                "gradient if pull is None else gradient - pull",
            ),
        ),
    ),
    "stream/learners/_shared/replay_buffer.py": (
        (REPLAY, *contract("replay")),
        (
            (".permutation(len(rows))\n", ".permutation(len(rows)) * 0 + np.arange(len(rows))\n"),
            ("generator.permutation(len(split))[:wanted]", "np.arange(len(split))[:wanted]"),
            ('"memory", task.name)', '"memory")'),
            ('(self._seed, "memory"', '(0, "memory"'),
            ('"replay", task.name, epoch.index)', '"replay", task.name)'),
            ('(self._seed, "replay"', '(0, "replay"'),
            ("np.sort(order[: self._budget])", "order[: self._budget]"),
            (
                "counts = generator.multinomial(count, weights)",
                "counts = np.round(count * np.asarray(weights)).astype(int)",
            ),
            (
                '[(task, task.split("train"), rows), *drawn]',
                '[(task, task.split("train"), rows), *drawn[:1]]',
            ),
        ),
    ),
    "stream/learners/_shared/replaying.py": (
        (REPLAY, *contract("replay", "derpp")),
        (
            ("return name == task.name or any(", "return name == task.name and any("),
            (
                "return name == task.name or any(name == earlier.name for earlier in self.learned)",
                "return name == task.name",
            ),
            (
                'None if self.budget == "all" else int(self.budget)',
                'None if self.budget == "all" else int(self.budget) // 2',
            ),
            (
                'ReplayBuffer(None if self.budget == "all" else int(self.budget), self.seed)',
                'ReplayBuffer(None if self.budget == "all" else int(self.budget), 0)',
            ),
        ),
    ),
    "stream/learners/_shared/sequential.py": (
        (SEQUENTIAL, *contract("shared_adapter", "ewc")),
        (
            ("or name in self._layernorms or super()", "or super()"),
            ("Architecture(encoder.width, self.size)", "Architecture(encoder.width, 64)"),
            (
                "self.shared_tensors, self.fit_tensors, self.ANCHOR",
                "self.shared_tensors, {}, self.ANCHOR",
            ),
            ("QuadraticPenalty(self.shared_tensors, ", "QuadraticPenalty({}, "),
        ),
    ),
    "stream/learners/_shared/sparse.py": (
        (ISOLATED, *contract("lt_sft", "diff_pruning")),
        (
            ("round(self.fraction * len(flat))", "round(2 * self.fraction * len(flat))"),
            ("self.second_start(name, change) * mask", "self.second_start(name, change)"),
            (
                "parameter.copy_(torch.where(chosen, parameter, self.task_parameters.first[name]))",
                "pass",
            ),
            ("gradient.mul_(chosen)", "pass"),
            (
                "return super().workload(task, training).twice()",
                "return super().workload(task, training)",
            ),
            ("p.detach() - first[name] for", "first[name] - p.detach() for"),
            (
                "if epoch.is_late and not self.fit_tensors",
                "if not epoch.is_late and not self.fit_tensors",
            ),
            ("flat.topk(", "flat.abs().topk("),
        ),
    ),
    "stream/learners/base.py": (
        (
            TRAINING,
            OLORA,
            SEQUENTIAL,
            *contract("adapter", "replay", "progressive", "joint", "lt_sft"),
        ),
        (
            ("[*(names[: names.index(task)] if task in names else names), task]", "[*names, task]"),
            ("        self.fit_tensors.clear()\n        if self.tags", "        if self.tags"),
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
                "        if self.buffer is not None and not serve_only:\n            self.buffer.add(task)",
                "        pass",
            ),
            (
                "draw_into(encoder, seed, name, of_task=name)",
                "draw_into(encoder, 0, name, of_task=name)",
            ),
            ("self.seed, task)}", "0, task)}"),
            ("            draw_into(encoder, seed)\n", "            draw_into(encoder, 0)\n"),
            ("        self.shared_tensors.clear()\n", ""),
            ("        copy_named(tensors, self.fit_tensors)\n", ""),
            (
                "        copy_named(tensors, {n: parameters[n] for n in tensors if not n.startswith(SHARED)})\n",
                "",
            ),
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
            ("requires_grad_(own and self.trains(name))", "requires_grad_(self.trains(name))"),
            ("if tensor.is_floating_point())", ")"),
            ("read = {*self.sources(task).names, None}", "read = {task, None}"),
            (
                "return {**idle, **pretrained, **self.shared_tensors}",
                "return {**idle, **pretrained}",
            ),
            ("with self.active.holding(self.sources(task.name)):", "if True:"),
            ("return {**model, **kept, **heads}", "return {**model, **kept}"),
        ),
    ),
    # The modules that methods rest on.
    "stream/models/modules/bottleneck.py": (
        (ADAPTERS, ISOLATED, *contract("adapter", "parallel")),
        (
            ("std=std, a=-2 * std, b=2 * std", "std=std, a=-1 * std, b=1 * std"),
            ("layer.bias.zero_()", "layer.bias.fill_(1e-3)"),
            ("return hidden + self.change(hidden)", "return self.change(hidden)"),
            ("return added if scale == 1 else added * scale", "return added"),
            ("range(architecture.depth - 1)", "range(architecture.depth)"),
            ("hidden = self._activate(layer(hidden))", "hidden = layer(hidden)"),
            ("f * (1 + adapter.change(x))", "f * adapter.change(x)"),
            (
                '"pfeiffer": lambda adapter, f, x, norm: f + adapter.change(norm(f + x))',
                '"pfeiffer": lambda adapter, f, x, norm: f + adapter.change(norm(f))',
            ),
            ("max(width // reduction, 1)", "max(width // reduction - 1, 1)"),
            ("            nn.init.zeros_(self.up.weight)\n", "            pass\n"),
            ("        if not self.there.on:\n            return hidden\n", ""),
            ("functional.gelu,", "functional.relu,"),
            (
                '    def __deepcopy__(self, memo: object) -> "Switch":',
                '    def _deepcopy(self, memo: object) -> "Switch":',
            ),
        ),
    ),
    "stream/models/modules/low_rank.py": (
        (ISOLATED, OLORA, *contract("lora")),
        (
            ("self._scale = alpha / rank", "self._scale = alpha"),
            ("a=math.sqrt(5)", "a=0.0"),
            ("self.up.weight.zero_()", "self.up.weight.fill_(1e-3)"),
            (
                'QUERY_VALUE = ("query", "value", "q", "v")',
                'QUERY_VALUE = ("query", "key", "q", "k")',
            ),
            ("for name in self._active.names:", "for name in self._active.names[-1:]:"),
        ),
    ),
    "stream/models/modules/gates.py": (
        (ISOLATED, *contract("diff_pruning")),
        (
            ("LOW, HIGH = -1.5, 1.5", "LOW, HIGH = -0.1, 1.1"),
            ("- torch.log1p(-u) + a", "+ torch.log1p(-u) + a"),
            ("* (HIGH - LOW) * inside", "* inside"),
            ("* (HIGH - LOW) * inside", "* (HIGH - LOW)"),
            ("math.log(-LOW / HIGH)", "math.log(-LOW)"),
            ("torch.full_like(a, 0.5) if middle", "torch.full_like(a, 0.9) if middle"),
            ("gradient * slope * whole)", "gradient * slope)"),
            ("(gradient * z).sum() * whole_slope", "gradient.sum() * whole_slope"),
            ("else a.grad + gradient", "else gradient"),
            ("opened * expected_open(self.whole)", "opened"),
        ),
    ),
    "stream/models/modules/prompt.py": (
        (PROMPT, BF16, *contract("prompt_tuning")),
        (
            (
                "torch.randperm(len(table), generator=generator)",
                "torch.randint(len(table), (len(table),), generator=generator)",
            ),
            ("torch.randperm(len(table), generator=generator)", "torch.arange(len(table))"),
            ("copied.requires_grad_(self.vectors.requires_grad)", "copied"),
        ),
    ),
    "stream/models/modules/composition.py": (
        (ISOLATED, *contract("adapterfusion", "stacked")),
        (
            ("h = f + self.change(task, h)", "h = h + self.change(task, h)"),
            ("scores.softmax(0)", "scores.softmax(1)"),
            ("self.fusion(f, torch.stack(", "self.fusion(h, torch.stack("),
            ("return f + self.fusion(", "return self.fusion("),
            ("self._norm[0](f + self._input)", "self._norm[0](f)"),
            ("self.change(self.active.names[-1], h)", "self.change(self.active.names[0], h)"),
            ("draw(self.key, 0.02, generator)", "draw(self.key, 0.2, generator)"),
            ("fill_diagonal_(1.0)", "fill_diagonal_(0.5)"),
        ),
    ),
    "stream/models/modules/columns.py": (
        (ISOLATED, *contract("progressive")),
        (
            ("* self.scales[:count]", ""),
            ("self.up(functional.relu(inner))", "self.up(inner)"),
            (
                "below = below + column.lateral(self._inputs[:place])",
                "below = column.lateral(self._inputs[:place])",
            ),
            ("column.lateral(self._inputs[:place])", "column.lateral(self._inputs[:1])"),
            ("below = self._inputs[place]", "below = self._inputs[0]"),
            ("hidden[-1], *output[1:]", "hidden[0], *output[1:]"),
            ("else hidden[-1]\n", "else hidden[0]\n"),
            ("size, place + 1) if index", "size, place + 2) if index"),
        ),
    ),
    "stream/models/modules/projected_attention.py": (
        (ISOLATED, *contract("pals")),
        (
            ("attn_mask=mask)", "attn_mask=None)"),
            ("self.dropout(hidden) + self.pals[", "self.dropout(hidden) - self.pals["),
            (
                "self.pals[self._active.names[-1]](h, mask)",
                "self.pals[self._active.names[-1]](hidden, mask)",
            ),
            ('mask = args[1] if len(args) > 1 else kwargs.get("attention_mask")', "mask = None"),
            (
                "return self.projections.decode(inner)",
                "return self.projections.decode(inner) + hidden",
            ),
        ),
    ),
    "stream/models/modules/fresh.py": (
        (ADAPTERS, *contract("adapter", "adapterfusion")),
        (),
    ),
    "stream/models/losses.py": (
        (
            REPLAY,
            SEQUENTIAL,
            TRAINING,
            *contract("replay", "finetune"),
            "tests/data/test_batches.py",
            "tests/data/test_squad.py",
        ),
        (
            (
                "squared_error(logits[:, 0], labels).sum()",
                "squared_error(logits[:, 0], labels).mean()",
            ),
            ("0.0, found - scores) ** 2", "0.0, found - scores).abs()"),
            (
                "torch.where(scores.isnan(), 0.0, found - scores)",
                "torch.where(scores.isnan(), found, found - scores)",
            ),
            ("logits.masked_fill(owners != own[:, None], Head.NEVER)", "logits"),
            ("return entropy + squared_error", "return entropy + 2 * squared_error"),
            ('reduction="sum") / 2', 'reduction="sum")'),
            ("| (place == 0)", ""),
            ("(place < spans[:, 3:4])", "(place <= spans[:, 3:4])"),
            (
                "return summed_loss(batch, logits) / batch.size",
                "return summed_loss(batch, logits) / len(batch)",
            ),
            ("return torch.stack(losses).sum()", "return torch.stack(losses).mean()"),
        ),
    ),
    "stream/models/heads.py": (
        (TRAINING, BF16, SEQUENTIAL, *contract("adapter", "replay")),
        (
            ("HEAD_STD = 0.02", "HEAD_STD = 0.2"),
            ("b=2 * HEAD_STD", "b=0"),
            ('"head", task.name)', '"head")'),
            ("torch_generator(self._seed,", "torch_generator(0,"),
            ("sum(task.spec.score_range) / 2", "sum(task.spec.score_range)"),
            ("self.dropout(texts.float())", "texts.float()"),
            ("                self._computes.read_trained()\n", "                pass\n"),
            (
                "self._computes, self._took = self._half, not torch.is_grad_enabled()",
                "self._computes, self._took = self._half, True",
            ),
            ("            self._half.give_gradients()\n", "            pass\n"),
            ("self.bias.fill_(self.NEVER)", "self.bias.fill_(0)"),
            ("            self._half.read_all()\n", "            pass\n"),
        ),
    ),
    "stream/models/bf16.py": (
        (BF16, *contract("adapter", "finetune")),
        (
            ("        copy_all(self._halves, self._trained)\n", ""),
            ("            half.grad = None\n", "            pass\n"),
            ("gradient.add_(earlier)", "pass"),
            ("        copy_all(halves, originals)\n", ""),
            ("half.requires_grad_(original.requires_grad)", "half.requires_grad_(True)"),
            ("        self._take_mode()\n        for half", "        for half"),
            ("self.encoder.train(self._original.training)", "self.encoder.train()"),
        ),
    ),
    "stream/models/sparse_parameters.py": (
        (ISOLATED, *contract("lt_sft")),
        (
            ("        self._show(self._applied(self._stored[task]))\n", ""),
            ("flat[places] + differences", "differences"),
            ("tensor.detach() - self.first[name]", "self.first[name] - tensor.detach()"),
            ("return self.first.get(name, parameter)", "return parameter"),
            ("int(places.max()) < size", "int(places.max()) <= size"),
        ),
    ),
    "stream/models/task_parameters.py": (
        (*contract("adapter", "independent"),),
        (
            ("            self._show(before)\n", "            pass\n"),
            (
                "        self._stored[task] = self._copy()\n",
                "        self._stored[task] = dict(self.working)\n",
            ),
            (
                "        self._show(values)\n        self.active = task",
                "        self.active = task",
            ),
            (
                "tensor.detach().clone() for name, tensor in self.working",
                "tensor.detach() for name, tensor in self.working",
            ),
            ("            tensor.copy_(stored[name])\n", "            pass\n"),
        ),
    ),
    # How a task is learned.
    "stream/training/loop.py": (
        (TRAINING, *contract("adapter", "si")),
        (
            ("        optimizer.zero_grad(set_to_none=True)\n", ""),
            ("        state.clip_gradients()\n", ""),
            ("        learner.after_backward(batch)\n", ""),
            ("                learner.after_step(batch)\n", ""),
            ("    learner.model.train()\n", ""),
            ("                state.set_learning_rate()\n", ""),
            ('"dropout", task.name, epoch.index)', '"dropout", task.name)'),
            ("torch_randomness(learner.seed,", "torch_randomness(0,"),
            (
                "                with state.paused():\n                    on_step",
                "                if True:\n                    on_step",
            ),
            (
                "with meter.everything() if meter is not None else nullcontext():",
                "with nullcontext():",
            ),
            (
                "        learner.after_backward(batch)\n        state.clip_gradients()\n",
                "        state.clip_gradients()\n        learner.after_backward(batch)\n",
            ),
        ),
    ),
    "stream/training/schedule.py": (
        (TRAINING,),
        (
            ("return (step + 1) / (rising + 1)", "return step / (rising + 1)"),
            ("return (step + 1) / (rising + 1)", "return (step + 1) / rising"),
            ("return (steps - step) / (steps - rising)", "return (steps - step) / steps"),
            ("parameter.ndim >= 2", "parameter.ndim >= 1"),
            ("learner.head_lr if learner.head_lr and", "learner.lr if learner.head_lr and"),
            ("eps=1e-6, foreach=True", "eps=1e-8, foreach=True"),
        ),
    ),
    "stream/training/fit_state.py": (
        (TRAINING, *contract("adapter", "lt_sft", "replay")),
        (
            ("            load_tensors(resumed.tensors, self._parameters, self.optimizer)\n", ""),
            ("            learner.load_fit_state(learner_state(resumed.tensors))\n", ""),
            ("            load_randomness(self._state.tensors, self._device)\n", ""),
            (
                "islice(batches, self._state.batch, None)",
                "islice(batches, self._state.batch + 1, None)",
            ),
            ("range(self._state.epoch, self._work.epochs)", "range(self._work.epochs)"),
            (
                "        self._state.epoch, self._state.batch = epoch.index, 0\n",
                "        self._state.epoch = epoch.index\n",
            ),
            ("self._training.clip_norm)", "10 * self._training.clip_norm)"),
            ("meter.total = resumed.flops", "meter.total = 0"),
            ("time.perf_counter() - self._state.seconds", "time.perf_counter()"),
            ("self._state.examples += len(batch)", "self._state.examples += 1"),
            (
                "self._losses = _LossLog(task.name, self._device, self._state.losses)",
                "self._losses = _LossLog(task.name, self._device, [])",
            ),
            ("if not math.isfinite(value)", "if math.isinf(value)"),
            ('f"{len(self.values) + 1} with', 'f"{len(self.values)} with'),
        ),
    ),
    "stream/training/snapshot.py": (
        (TRAINING, *contract("adapter", "replay")),
        (
            ('("step", "exp_avg", "exp_avg_sq")', '("exp_avg", "exp_avg_sq")'),
            ('("step", "exp_avg", "exp_avg_sq")', '("step", "exp_avg")'),
            ("tensor.detach().cpu().clone()", "tensor.detach().cpu()"),
            ('    torch.set_rng_state(tensors["random.cpu"])\n', ""),
            ("min(len(stored), len(into))", "min(len(stored), len(into)) - 1"),
        ),
    ),
    "stream/training/flops.py": (
        ("tests/training/test_flops.py",),
        (
            ("rows = tuple((p.task.name, p.stop", 'rows = tuple(("", p.stop'),
            ("tuple(p.requires_grad for p in self._model.parameters())", "()"),
            ("    learner.model.zero_grad(set_to_none=True)\n", ""),
            ("    with preserved_rng_state():\n", "    if True:\n"),
            (
                "        self.total += self._known[shape]\n",
                "        self.total = self._known[shape]\n",
            ),
        ),
    ),
    "stream/training/engine.py": (
        (TRAINING, BF16),
        (
            ("        learner.model.sync_bf16_copy()\n", ""),
            ("elif counting:", "elif not counting and False:"),
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
            (
                "return isinstance(other, _Same) and other.value is self.value",
                "return isinstance(other, _Same) and id(other.value) != 0",
            ),
            ("MOST_STATES = 8", "MOST_STATES = 800"),
            ("        vars(self._learner).update(before)\n", ""),
            ("            vars(self._learner).pop(key)\n", "            pass\n"),
            ("LOSS_TOLERANCE = 1e-2", "LOSS_TOLERANCE = 1e3"),
            ("return tuple(map(_described, value))", "return len(value)"),
        ),
    ),
    # What is told of a run.
    "stream/metrics/scores.py": (
        (METRICS,),
        (
            ("matrix[k - 1, :k]", "matrix[k - 1, : k - 1]"),
            ("average_score(matrix, i + 1)", "average_score(matrix, i)"),
            ("diagonal=True", "diagonal=False"),
        ),
    ),
    "stream/metrics/transfer.py": (
        (METRICS,),
        (
            ("matrix[k - 1, : k - 1]", "matrix[k - 1, :k]"),
            ("sign(direction) * (retained - learned)", "sign(direction) * (learned - retained)"),
            ("1.0 - abs(min(change, 0.0))", "1.0 - abs(change)"),
            ("max(change, 0.0)", "change"),
            ("np.diagonal(matrix, offset=1)[: k - 1]", "np.diagonal(matrix)[: k - 1]"),
            ("(before - start).mean()", "before.mean()"),
            ("np.triu_indices(rows_done(matrix), 1)", "np.triu_indices(rows_done(matrix), 0)"),
            ("np.diagonal(matrix)[columns]", "matrix[-1, columns]"),
        ),
    ),
    "stream/metrics/retention.py": (
        (METRICS,),
        (
            ("scores[j : k - 1, j]", "scores[j:k, j]"),
            ("scores[j : k - 1, j]", "scores[: k - 1, j]"),
            (".max()", ".min()"),
            ("0.0 - change", "change"),
            ("if k < 2:", "if k < 1:"),
        ),
    ),
    "stream/metrics/references.py": (
        (METRICS,),
        (
            ("gains[1:].mean()", "gains.mean()"),
            ("if mean > 0 else None", "if mean != 0 else None"),
            ("counted = room > 0", "counted = room >= 0"),
            (").mean()) - 1, int", ").mean()), int"),
            ("sign(direction) * gaps.mean()", "gaps.mean()"),
            ("learned - alone", "alone - learned"),
        ),
    ),
    "stream/metrics/within_task.py": (
        (METRICS,),
        (
            ("p.step > 0]", "p.step >= 0]"),
            ("score_curve(points, j, j + 1, k)", "score_curve(points, j, j, k)"),
            ("current / k + (1 - 1 / k) * minimum", "(1 - 1 / k) * current + minimum / k"),
            ("range(1, min(window, len(scores)))", "range(1, min(window + 1, len(scores)))"),
            ("for b in range(beta + 1)]))", "for b in range(beta)]))"),
            ("max([0.0, *(", "max([-1.0, *("),
            (
                "better * score_curve(points, j, j, k), window)",
                "better * score_curve(points, j, j + 1, k), window)",
            ),
        ),
    ),
    "stream/metrics/flips.py": (
        (METRICS,),
        (
            ("flips = (old & wrong)", "flips = (~old & ~wrong)"),
            ("errors = wrong.sum(axis=1)", "errors = (~old).sum(axis=1)"),
            ("flips / new.shape[1]", "flips / new.shape[0]"),
            ('rows = [j, k - 1] if since == "learned"', 'rows = [j, k - 1] if since != "learned"'),
            ("(examples + 7) // 8", "examples // 8"),
            ("flips[errors > 0] / errors[errors > 0]", "flips / np.maximum(errors, 1)"),
        ),
    ),
    "stream/metrics/cost.py": (
        (METRICS,),
        (
            ("sizes[0] / _positive", "sizes[-1] / _positive"),
            ("return 1.0 - min(1.0,", "return min(1.0,"),
            ("sizes.mean()) / data", "sizes.max()) / data"),
            ("one_pass * epsilon / spent", "one_pass / spent"),
            ("if (epsilon < 1).any()", "if (epsilon < 0).any()"),
        ),
    ),
    "stream/metrics/cells.py": (
        (METRICS,),
        (
            ("scores[: rows_done(matrix)], what)", "scores, what)"),
            ('"lower": -1.0', '"lower": 1.0'),
            ("0 if diagonal else -1", "0 if diagonal else -2"),
            ("if np.isnan(values).any():", "if np.isnan(values).all():"),
        ),
    ),
    "stream/metrics/catalogue.py": (
        (METRICS,),
        (
            ('"bwt": backward_transfer,', '"bwt": backward_transfer_diaz,'),
            ("WINDOW = 10", "WINDOW = 5"),
            ('correct, k, "previous")', "correct, k)"),
            (
                "samples_storage_efficiency(storage.buffer, storage.data)",
                "samples_storage_efficiency(storage.model, storage.data)",
            ),
            ("_value(worst_case_score, probe, k)", "_value(minimum_score, probe, k)"),
        ),
    ),
    "stream/record/matrix.py": (
        (RECORD,),
        (
            ("last = self.rows_done() - 1", "last = self.rows_done()"),
            ("range(max(last, 0))", "range(max(last - 1, 0))"),
            (
                "(self.cells[j][j], self.cells[last][j])",
                "(self.cells[last][j], self.cells[last][j])",
            ),
            ("reversed(self.cells)", "self.cells"),
            ("np.nan if cell is None", "0.0 if cell is None"),
            ("if not math.isfinite(self.score)", "if math.isnan(self.score)"),
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
            ("buffer_examples=buffer[0]", "buffer_examples=buffer[1]"),
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
            ("record.cells[len(self._correct) : record", "record.cells[: record"),
            (
                "if value is not None and not math.isfinite(value)",
                "if value is not None and math.isnan(value)",
            ),
            ("data=self._data_bytes", "data=1 + self._data_bytes"),
        ),
    ),
    "stream/record/run_record.py": (
        (RECORD,),
        (
            ("row[: len(known)] = known", "row[: len(known) - 1] = known[:-1]"),
            ("        self.ledger.total_multiple = earlier.ledger.total_multiple\n", ""),
            ("        self.losses = earlier.losses\n", ""),
            ("        self.baseline = earlier.baseline\n", ""),
            ("self.train_s += seconds", "self.train_s = seconds"),
            ("self.evaluate_examples += examples", "self.evaluate_examples += 1"),
            ("[*earlier.overrides, *(self.overrides or [])]", "earlier.overrides"),
            ("found.schema == SCHEMA", "found.schema <= SCHEMA"),
        ),
    ),
    "stream/run/checkpoint.py": (
        (CHECKPOINT,),
        (
            ("GENERATIONS_KEPT = 2", "GENERATIONS_KEPT = 1"),
            ("if hashlib.sha256(text).hexdigest() != digest:", "if not digest:"),
            ("if hashlib.sha256(data).hexdigest() != digest:", "if not data:"),
            ("        self._collect_garbage(generation, digests)\n", ""),
            (
                "in reversed(self.generations()):\n            try:\n                found",
                "in self.generations():\n            try:\n                found",
            ),
            ("max(self.generations(), default=0) + 1", "max(self.generations(), default=0) + 2"),
            ("if not (path.exists() and path.read_bytes() == data):", "if not path.exists():"),
            ("tensor.detach().cpu().contiguous()", "tensor.detach().cpu().contiguous().float()"),
            ("if path.stem not in used:", "if path.stem in used:"),
            ('        if content["schema"] != SCHEMA:', '        if content["schema"] < SCHEMA:'),
            ("len(d) == DIGEST_LETTERS and d.isalnum()", "len(d) == DIGEST_LETTERS"),
            ("            if not self._object(digest).exists():", "            if not digest:"),
        ),
    ),
    "stream/run/checkpoint_manager.py": (
        (CHECKPOINT, *contract("adapter", "replay")),
        (
            (
                "if (name := task_group(task)) not in self._unchanged",
                "if (name := task_group(task)) or True",
            ),
            ("        if learner.tags.parameter_isolation:\n", "        if True:\n"),
            ("        groups[SHARED] = learner.shared_state()\n", "        groups[SHARED] = {}\n"),
            ("            learner.load_shared_state(store.load(checkpoint, SHARED))\n", ""),
            ("        self._keep(learner, checkpoint.groups)\n", ""),
            ("return self.training is None or self.record.memory.promised", "return True"),
            (
                "            groups[TRAINING] = snapshot.tensors\n",
                "            groups[TRAINING] = dict(list(snapshot.tensors.items())[1:])\n",
            ),
            ("if not self._config.enabled:", "if self._config.enabled is None:"),
        ),
    ),
    "stream/fingerprint.py": (
        ("tests/run/test_reuse.py",),
        (
            ("{tensor.dtype} {tuple(tensor.shape)} ", "{tuple(tensor.shape)} "),
            ("{tensor.dtype} {tuple(tensor.shape)} ", "{tensor.dtype} {tensor.numel()} "),
            ("    state.update(flat.view(torch.uint8).numpy().data)\n", ""),
            ("[digests, evidence]", "[digests]"),
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
