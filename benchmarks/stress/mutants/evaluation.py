"""Scores without the task (`stream/routing/`, `stream/evaluation/`), and fingerprints."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import ROUTED, ROUTING

MUTANTS = (
    *changes(
        "stream/routing/statistics.py",
        (ROUTING,),
        ("self._counts * counts / together", "counts / together"),
        ("self._means += change *", "self._means += 0.9 * change *"),
    ),
    *changes(
        "stream/routing/class_mean.py", (ROUTING,), ("own - 2 * features @", "own - features @")
    ),
    *changes(
        "stream/routing/mahalanobis.py",
        (ROUTING,),
        ("(1 - share) * whole", "whole"),
        ('/ int(self.shared["rows"])', "/ len(self.tasks)"),
        ('self.shared["scatter"] + scatter', "scatter"),
    ),
    *changes("stream/routing/entropy.py", (ROUTING,), ("np.log(logits.shape[1])", "np.log(2)")),
    *changes(
        "stream/routing/confidence.py",
        (ROUTING,),
        ("-np.asarray(logsumexp", "np.asarray(logsumexp"),
    ),
    *changes(
        "stream/routing/features.py",
        (ROUTED,),
        ("(tokens.float() * mask)", "tokens.float()"),
        ("elif name in inside and name not in learner.ownership.shared", "elif name in inside"),
    ),
    *changes(
        "stream/evaluation/foreign.py",
        ("tests/evaluation/test_foreign.py",),
        ("judged[group.rows] = 0", "judged[group.rows] *= 0.5"),
        ("(low + high) / 2, np.float32", "low, np.float32"),
        ("0 if task.is_regression else 1", "0"),
    ),
    *changes(
        "stream/evaluation/routed.py",
        (ROUTED,),
        ("known[0] == mark", "known[0] is not None"),
        ("names <= set(group)", "names & set(group)"),
    ),
    *changes(
        "stream/fingerprint.py",
        ("tests/test_fingerprint.py",),
        ("tensor.dtype, tensor.shape, tensor.stride())", "tensor.dtype, tensor.shape)"),
        ("None if tensor.is_inference() else tensor._version", "None"),
        ("tensor.detach(), tensor_digest(tensor)", "tensor[:0], tensor_digest(tensor)"),
        ("{tensor.dtype} {tuple(tensor.shape)} ", "{tuple(tensor.shape)} "),
        (
            "json.dumps([digests, evidence], sort_keys=True)",
            "json.dumps([sorted(digests.values()), evidence])",
        ),
    ),
)
