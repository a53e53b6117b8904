"""The human ceiling and the alternative annotator test: by their definitions, and on judges of known quality."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError
from evenhand.stats.agreement import cohen_kappa, exact_agreement
from evenhand.stats.annotators import alternative_annotator_test, human_ceiling
from evenhand.stats.resample import Resampling
from evenhand.stats.table import Floats, Level, Ratings

PLAIN = Resampling(draws=0)
PEOPLE = ["a", "b", "c"]


def _panel(seed: int, skill: list[float], units: int = 200, gaps: float = 0.0, level: Level = "nominal") -> Ratings:
    """Raters who know the true label of four with a probability each, else guess: people a, b, c, then the judge."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, (units, 1))
    codes = np.where(rng.random((units, len(skill))) < skill, true, rng.integers(0, 4, (units, len(skill)))).astype(
        float
    )
    codes[rng.random(codes.shape) < gaps] = np.nan
    return Ratings.of(codes, level, categories=range(4), raters=[*PEOPLE[: len(skill) - 1], "judge"])


@pytest.mark.parametrize("statistic", ["kappa", "exact"])
def test_ceiling_is_the_mean_of_pairs(statistic: str) -> None:
    """Ceiling and judge are plain means over pairs, the gap their difference."""
    ratings = _panel(1, [0.9, 0.8, 0.7, 0.8], gaps=0.1)

    def of(a: str, b: str) -> float:
        pair = ratings.select([a, b])
        found = exact_agreement(pair) if statistic == "exact" else cohen_kappa(pair, resampling=PLAIN)
        assert found.value is not None
        return found.value

    found = human_ceiling(ratings, people=PEOPLE, judges=["judge"], statistic=statistic)
    people = np.mean([of(a, b) for a, b in combinations(PEOPLE, 2)])
    judge = np.mean([of("judge", p) for p in PEOPLE])
    assert found.people.value == pytest.approx(people, abs=1e-12)
    assert found.judges["judge"].value == pytest.approx(judge, abs=1e-12)
    gap = found.gaps["judge"]
    assert gap.value == pytest.approx(judge - people, abs=1e-12)
    assert gap.ci is not None and gap.ci[0] < gap.value < gap.ci[1]


def test_ceiling_of_one_pair_is_its_kappa() -> None:
    """With two people the ceiling, interval included, is their kappa."""
    ratings = _panel(2, [0.9, 0.8, 0.5])
    found = human_ceiling(ratings, people=["a", "b"], judges=["judge"])
    direct = cohen_kappa(ratings.select(["a", "b"]))
    assert found.people.value == pytest.approx(direct.value)
    assert found.people.ci is not None and found.people.ci == pytest.approx(direct.ci, abs=0.02)
    assert found.gaps["judge"].ci is not None and found.gaps["judge"].ci[1] < 0


@pytest.mark.parametrize("statistic", ["alpha", "spearman", "kendall", "mae", "kappa-quadratic", "ac1"])
def test_ceiling_by_any_measure_of_pairs(statistic: str) -> None:
    """Every measure of two raters makes a ceiling; a judge who is one more person is at it."""
    ratings = _panel(3, [0.8] * 4, level="ordinal")
    found = human_ceiling(ratings, people=PEOPLE, judges=["judge"], statistic=statistic, resampling=Resampling(300))
    gap = found.gaps["judge"]
    assert gap.ci is not None and gap.ci[0] < 0 < gap.ci[1]


def test_ceiling_without_enough_people_or_units() -> None:
    """One person makes no ceiling; pairs with few units in common are left out and counted."""
    ratings = _panel(4, [0.8, 0.8, 0.8, 0.8])
    alone = human_ceiling(ratings, people=["a"], judges=["judge"])
    assert alone.people.value is None and alone.gaps == {}
    assert alone.judges["judge"].value is not None
    codes = ratings.codes.copy()
    codes[5:, 2] = np.nan  # c rated five units
    few = Ratings.of(codes, "nominal", categories=range(4), raters=ratings.raters)
    found = human_ceiling(few, people=PEOPLE, judges=["judge"], resampling=PLAIN)
    assert found.people.value == pytest.approx(cohen_kappa(few.select(["a", "b"]), resampling=PLAIN).value)
    assert found.people.missing == {"pairs with fewer than 10 units in common": 2}


def _by_definition(codes: Floats, column: int, epsilon: float, nominal: bool) -> tuple[int, float, float, float]:
    """Units, advantage of judge and person, and p value, unit by unit; the judge is the last column."""
    wins, losses = [], []
    for row in codes:
        others = [row[k] for k in range(len(row) - 1) if k != column and not np.isnan(row[k])]
        if not others or np.isnan(row[column]) or np.isnan(row[-1]):
            continue
        judge, person = (
            np.mean([v == o for o in others]) if nominal else -np.sqrt(np.mean([(v - o) ** 2 for o in others]))
            for v in (row[-1], row[column])
        )
        wins.append(float(judge >= person))
        losses.append(float(person >= judge))
    gap = np.array(losses) - np.array(wins)
    p = float(stats.ttest_1samp(gap, epsilon, alternative="less").pvalue)
    return len(wins), float(np.mean(wins)), float(np.mean(losses)), p


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_alternative_test_by_its_definition(level: Level) -> None:
    """Advantages and p values follow the definition, adjusted p values scipy's Benjamini-Yekutieli."""
    ratings = _panel(5, [0.8, 0.7, 0.75, 0.7], gaps=0.15, level=level)
    found = alternative_annotator_test(ratings, judge="judge", people=PEOPLE, epsilon=0.1)
    expected = [_by_definition(ratings.codes, i, 0.1, level == "nominal") for i in range(3)]
    for row, (n, wins, losses, p) in zip(found.standings, expected, strict=True):
        assert row.n == n
        assert (row.judge, row.person, row.p) == pytest.approx((wins, losses, p), abs=1e-12)
    adjusted = stats.false_discovery_control([e[3] for e in expected], method="by")
    assert [row.adjusted for row in found.standings] == pytest.approx(list(adjusted), abs=1e-12)
    assert [row.better for row in found.standings] == [p <= 0.05 for p in adjusted]
    assert found.winning_rate == pytest.approx(np.mean(adjusted <= 0.05))
    assert found.advantage == pytest.approx(np.mean([e[1] for e in expected]))


def test_good_judges_pass_and_poor_ones_do_not() -> None:
    """A judge like the people passes with an allowance of 0.2; one who guesses does not."""
    good = alternative_annotator_test(_panel(6, [0.8] * 3 + [0.85]), judge="judge", people=PEOPLE)
    assert (good.passed, good.winning_rate) == (True, 1.0)
    poor = alternative_annotator_test(_panel(6, [0.8] * 3 + [0.1]), judge="judge", people=PEOPLE)
    assert (poor.passed, poor.winning_rate) == (False, 0.0)


def test_a_judge_who_copies_wins_without_variation() -> None:
    """Where the gap never varies the p value is 0 or 1, not undefined."""
    ratings = Ratings.of([["x"] * 4] * 40, "nominal", raters=[*PEOPLE, "judge"])
    same = alternative_annotator_test(ratings, judge="judge", people=PEOPLE, epsilon=0.1)
    assert [row.p for row in same.standings] == [0.0] * 3
    strict = alternative_annotator_test(ratings, judge="judge", people=PEOPLE, epsilon=0.0)
    assert (strict.passed, [row.p for row in strict.standings]) == (False, [1.0] * 3)


def test_alternative_test_says_who_is_left_out() -> None:
    """Annotators with fewer than 30 units are left out with a warning; with none left there is no result."""
    ratings = _panel(7, [0.8] * 4, units=25)
    found = alternative_annotator_test(ratings, judge="judge", people=PEOPLE)
    assert (found.passed, found.winning_rate, found.reason) == (None, None, "no annotator has enough units")
    assert found.warnings[0] == "a left out: 25 usable units, 30 needed"
    two = alternative_annotator_test(_panel(7, [0.8] * 4), judge="judge", people=["a", "b"])
    assert two.warnings == ("fewer than three people: the winning rate says little",)
    with pytest.raises(StatisticError, match="two people or more"):
        alternative_annotator_test(ratings, judge="judge", people=["a"])
    with pytest.raises(StatisticError, match="epsilon"):
        alternative_annotator_test(ratings, judge="judge", people=PEOPLE, epsilon=1.0)
