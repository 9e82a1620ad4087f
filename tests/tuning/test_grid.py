"""A grid goes on beyond its ends until the best lies inside, a range ends, or no trial is left."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from stream.errors import UserError
from stream.learners import LEARNERS
from stream.tuning.options import TuneOptions
from stream.tuning.record import LearnerRecord, SeedRun
from stream.tuning.search import Search, Searched, tried
from stream.tuning.space import Interval, Point, Space, checked, default_space, step_beyond

Score = Callable[[Point], float | None]


@dataclass
class Made:
    """Runs whose scores are made up, done in the order in which they were begun.

    Attributes:
        runs: what a point comes to.
        side_by_side: whether learners are.
        order: of the learners that are done next, where they are side by side.
        points: what was tried, in that order.
    """

    runs: Callable[[Point], list[SeedRun]]
    side_by_side: bool = False
    order: Sequence[str] = ()
    points: list[tuple[str, Point]] = field(default_factory=list)
    waiting: dict[str, list[Point]] = field(default_factory=dict)

    def begin(self, learner: str, points: Sequence[Point]) -> None:
        assert self.side_by_side or not self.waiting
        self.waiting[learner] = list(points)

    def done(self) -> Iterator[tuple[str, list[SeedRun]]]:
        order = iter(self.order)
        while self.waiting:
            learner = next(order, next(iter(self.waiting)))
            point = self.waiting[learner].pop(0)
            if not self.waiting[learner]:
                del self.waiting[learner]
            self.points.append((learner, point))
            yield learner, self.runs(point)


def searched(
    space: Space, score: Score, learner: str = "adapter", **options: Any
) -> tuple[LearnerRecord, list[Point]]:
    """Search with a made score; return the record, and the points in the order of trying."""
    settings = LEARNERS[learner]()
    search = Search(Searched(learner, settings, checked(space, settings)), TuneOptions(**options))
    made = Made(scored(score))
    ends = [ended for _, _, ended in tried([search], made)]
    assert ends == [False] * (len(ends) - 1) + [True]
    return search.record, [point for _, point in made.points]


def scored(score: Score) -> Callable[[Point], list[SeedRun]]:
    """One run of each point, with a made score."""

    def runs(point: Point) -> list[SeedRun]:
        value = score(point)
        return [SeedRun(seed=0, folder="x", score=value, reason="" if value else "diverged")]

    return runs


def near(target: float, key: str = "lr") -> Score:
    """The score is highest at the target, on a logarithmic scale."""
    return lambda point: 1 / (1 + abs(math.log(point[key] / target)))


def test_it_goes_on_by_its_own_ratio_until_the_best_lies_inside() -> None:
    found, tried = searched({"lr": (5e-4, 1e-3, 2e-3)}, near(8e-3))
    assert [p["lr"] for p in tried] == [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]
    assert [t.origin for t in found.trials] == ["grid"] * 3 + ["edge"] * 3
    assert found.best == 4
    assert found.ends == {"lr": "the best lies inside what was tried"}
    assert len(searched({"lr": (5e-4, 1e-3, 2e-3)}, near(1e-3))[1]) == 3


def test_every_learner_has_the_same_number_of_trials_at_most() -> None:
    for learner in ("adapter", "finetune"):
        found, tried = searched({"lr": (1e-3, 2e-3)}, near(1e3), learner, trials=5)
        assert len(tried) == len(found.trials) == 5
        assert found.ends == {"lr": "at an end: tune.trials=5 are used up"}
    with pytest.raises(UserError, match=r"has 6 trials, more than tune\.trials=5"):
        searched({"lr": (1, 2, 3), "size": (1, 2)}, near(1), trials=5)


def test_two_settings_go_on_at_once_with_the_others_as_in_the_best() -> None:
    def score(point: Point) -> float:
        return -abs(math.log2(point["lr"] / 4)) - abs(math.log2(point["size"] / 32))

    found, tried = searched({"lr": (1.0, 2.0), "size": (8, 16), "norm": ("none",)}, score)
    assert [(p["lr"], p["size"]) for p in tried[4:6]] == [(4.0, 16), (2.0, 32)]
    best = found.trials[found.best or 0].settings
    assert (best["size"], best["norm"]) == (32, "none")
    assert all(how.startswith("the best lies inside") for how in found.ends.values())


def test_a_failed_trial_bounds_a_search_and_is_never_the_best() -> None:
    found, tried = searched({"lr": (1e-3, 2e-3)}, lambda p: None if p["lr"] > 3e-3 else p["lr"])
    assert [p["lr"] for p in tried] == [1e-3, 2e-3, 4e-3]
    assert (found.best, found.trials[2].status, found.trials[2].reason) == (1, "failed", "diverged")
    assert found.ends == {"lr": "the best lies inside what was tried"}
    none, tried = searched({"lr": (1e-3, 2e-3)}, lambda p: None)
    assert (none.best, len(tried)) == (None, 2)
    assert none.ends == {"lr": "no trial has a score"}


def test_ties_go_to_the_first_and_a_lower_forgetting_is_better() -> None:
    assert searched({"lr": (1.0, 2.0, 3.0)}, lambda p: 0.5)[0].best == 0
    low, _ = searched(
        {"lr": (1.0, 2.0, 3.0)}, lambda p: abs(p["lr"] - 2) + 1, objective="forgetting"
    )
    assert low.best == 1


def test_runs_of_several_seeds_count_by_their_mean_and_one_failure_fails_the_trial() -> None:
    def runs(point: Point) -> list[SeedRun]:
        second = None if point["lr"] == 2.0 else 0.2
        return [
            SeedRun(seed=0, folder="a", score=0.6, seconds=1.5, steps=3),
            SeedRun(seed=1, folder="b", score=second, reason="" if second else "no", steps=1),
        ]

    settings = LEARNERS["adapter"]()
    search = Search(Searched("adapter", settings, {"lr": (1.0, 2.0)}), TuneOptions(trials=2))
    first, second = [trial for _, trial, _ in tried([search], Made(runs))]
    assert (first.score, first.seconds, first.steps) == (pytest.approx(0.4), 1.5, 4)
    assert (second.score, second.status, second.reason) == (None, "failed", "no")


def test_learners_side_by_side_find_what_each_finds_alone() -> None:
    space: Space = {"lr": (1e-3, 2e-3)}
    names = ("adapter", "finetune")
    searches = [
        Search(Searched(name, LEARNERS[name](), space), TuneOptions(trials=5)) for name in names
    ]
    order = ["adapter", "finetune", "adapter", "adapter", "finetune"]
    made = Made(scored(near(4e-3)), side_by_side=True, order=order)
    begun = [(s.searched.name, t.number, ended) for s, t, ended in tried(searches, made)]
    assert [name for name, _, _ in begun][:5] == order
    for search in searches:
        alone, points = searched(space, near(4e-3), search.searched.name, trials=5)
        assert search.record == alone
        assert [p for name, p in made.points if name == search.searched.name] == points
        own = [(number, ended) for name, number, ended in begun if name == search.searched.name]
        assert own == [(n, n == len(points) - 1) for n in range(len(points))]


@pytest.mark.parametrize(
    ("grid", "edge", "sign", "key", "learner", "expected"),
    [
        ((1e-3, 3e-3, 1e-2), 1e-2, 1, "lr", "adapter", 3.16e-2),
        ((1e-3, 3e-3, 1e-2), 1e-3, -1, "lr", "adapter", 3.16e-4),
        ((8, 64), 64, 1, "size", "adapter", 512),
        ((8, 16, 24), 24, 1, "size", "adapter", 32),  # by its step
        ((1, 2), 1, -1, "size", "adapter", "the range of learner.size ends there"),
        ((2, 8), 2, -1, "size", "adapter", 1),
        ((0.2, 0.6), 0.6, 1, "fraction", "lt_sft", 1),  # the end of the range itself
        ((0.5, 1.0), 1.0, 1, "fraction", "lt_sft", "the range of learner.fraction ends there"),
        ((0.0, 0.5), 0.5, 1, "strength", "ewc", 1.0),
    ],
)
def test_the_next_value(grid, edge, sign, key, learner, expected) -> None:
    assert step_beyond(grid, edge, sign, key, LEARNERS[learner]()) == expected


def test_a_space_is_held_to_the_learner() -> None:
    adapter = LEARNERS["adapter"]()
    assert default_space(adapter) == {"lr": (3.33e-4, 1e-3, 3e-3)}
    assert checked({"lr": (1, 2.0)}, adapter) == {"lr": (1.0, 2.0)}
    assert checked({"size": Interval(2.0, 8.0)}, adapter) == {"size": Interval(2, 8, whole=True)}
    for space, told in (
        ({"sise": (1, 2)}, "unknown setting of learner adapter 'sise'. Did you mean 'size'?"),
        ({"size": (0, 2)}, "learner.size must be at least 1, got 0"),
        ({"lr": (1, 1.0)}, "learner.lr has a value twice"),
        ({"lr": Interval(2.0, 1.0)}, "learner.lr: an interval goes from a number to a larger one"),
    ):
        with pytest.raises(UserError) as caught:
            checked(space, adapter)
        assert str(caught.value).startswith(told)
    with pytest.raises(UserError, match="majority has no learning rate to search"):
        default_space(LEARNERS["majority"]())


class Study:
    """Stands for Optuna's: suggests the middle of what is left of an interval."""

    def __init__(self, direction: str) -> None:
        self.direction, self.asked, self.told = direction, 0, []

    def ask(self) -> "Study":
        self.asked += 1
        return self

    def suggest_float(self, name: str, low: float, high: float, log: bool) -> float:
        assert log
        return low * (high / low) ** (self.asked / 10)

    def suggest_int(self, name: str, low: int, high: int, log: bool) -> int:
        return low + self.asked

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        return choices[self.asked % len(choices)]

    def tell(self, trial: "Study", value: float | None = None, state: str = "complete") -> None:
        self.told.append((value, state))


def test_optuna_is_asked_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    studies: list[Study] = []

    def create_study(sampler: Any, direction: str) -> Study:
        studies.append(Study(direction))
        return studies[0]

    made = SimpleNamespace(
        create_study=create_study,
        logging=SimpleNamespace(set_verbosity=lambda level: None, ERROR=40),
        samplers=SimpleNamespace(TPESampler=lambda seed: seed),
        trial=SimpleNamespace(TrialState=SimpleNamespace(FAIL="fail")),
    )
    monkeypatch.setitem(sys.modules, "optuna", made)
    space: Space = {"lr": Interval(1e-4, 1e-2, log=True), "size": Interval(1, 9), "norm": ("none",)}
    found, tried = searched(
        space, lambda p: None if p["size"] == 3 else p["lr"], trials=5, at_once=2
    )
    assert len(tried) == 5
    assert [t.origin for t in found.trials] == ["optuna"] * 5
    assert studies[0].direction == "maximize"
    scores = [None if p["size"] == 3 else p["lr"] for p in tried]
    assert studies[0].told == [(s, "complete" if s else "fail") for s in scores]
    assert found.best == scores.index(max(s for s in scores if s))


def test_without_optuna_an_interval_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match="an interval needs Optuna"):
        searched({"lr": Interval(1e-4, 1e-2)}, near(1))
    with pytest.raises(UserError, match=r"tune\.engine=grid takes lists"):
        searched({"lr": Interval(1e-4, 1e-2)}, near(1), engine="grid")


def test_optuna_itself_draws_the_same_trials_again() -> None:
    pytest.importorskip("optuna")
    space: Space = {"lr": Interval(1e-4, 1e-2, log=True), "norm": ("none", "layer")}
    eight, tried = searched(space, near(2e-3), trials=8)
    _, again = searched(space, near(2e-3), trials=12)
    assert again[:8] == tried
    assert eight.best == max(range(8), key=lambda n: near(2e-3)(tried[n]))
