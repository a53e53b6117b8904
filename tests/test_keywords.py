"""Options by keyword and on the command line: what each may be is told the same way."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import numpy
import pytest

import evenhand
from evenhand.cli.main import run
from evenhand.errors import InputError, UnknownNameError
from evenhand.keywords import NUMBERS, checked, number
from evenhand.ranking import table_ranking
from runs import SCORE, TWO, rows, write_jsonl


def test_an_unknown_keyword_names_close_ones() -> None:
    """A slip of the pen is told with what it may have meant, before anything is opened."""
    for name, meant in (("limt", "limit"), ("folder", "known: ask"), ("temprature", "temperature")):
        with pytest.raises(UnknownNameError, match=meant):
            evenhand.judge(rows(1), TWO, "fake", **{name: 1})


def test_a_check_tells_of_bad_keywords_as_a_run_does() -> None:
    """Another name, one of a run's, and a value of the wrong kind are input errors before anything is read."""
    for name, meant in (("lable_set", "label_set"), ("repeats", "known: format, label_set, map")):
        with pytest.raises(UnknownNameError, match=meant):
            evenhand.check([], TWO, **{name: 1})
    for name, value in (("map", "truth=t"), ("partial", 1), ("partial", None), ("label_set", 3), ("variant", ["x"])):
        with pytest.raises(InputError, match=f"{name} must be"):
            evenhand.check([], TWO, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown keyword 'label_set'"):
        evenhand.judge(rows(1), TWO, "fake", label_set="fastchat")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "3"), ("limit", 10**30), ("limit", 1.0), ("limit", True), ("sample", 0), ("seed", None),
        ("seed", 0.5),
        ("repeats", None), ("repeats", -1), ("concurrency", "auto"), ("timeout", 0), ("timeout", float("inf")),
        ("timeout", float("nan")), ("timeout", "60"), ("temperature", float("nan")), ("temperature", -0.1),
        ("temperature", 10**400), ("max_tokens", 0), ("skip_bad", "no"), ("reason", 1), ("fresh", None), ("ask", 3),
        ("orders", None), ("format", b"csv"), ("out", 3), ("out", "a\0b"),
        ("map", "question=q"), ("map", {"question": 1}),
        ("headers", [("a", "b")]), ("headers", {"a": 1}), ("variant", "scale=0-3"), ("weights", [0.5, 0.5]),
        ("weights", {"truth": "1", "style": 0}), ("base_url", Path("x")),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_an_input_error(name: str, value: Any) -> None:
    """Every keyword's value is checked, and the message begins with what is wrong."""
    with pytest.raises(InputError, match=r"must be|must map"):
        evenhand.judge(rows(1), TWO, "fake", **{name: value})
    for arguments in ((rows(1), 7), (rows(1), TWO, 7)):
        with pytest.raises(InputError, match="must be"):
            evenhand.judge(*arguments)  # type: ignore[arg-type]


def test_numbers_of_other_libraries_become_plain_ones() -> None:
    """A NumPy number is as good as Python's own, and is recorded as such."""
    given = checked({"limit": numpy.int64(3), "temperature": numpy.float32(0.5), "timeout": 3, "max_tokens": None})
    assert given == {"limit": 3, "temperature": 0.5, "timeout": 3.0, "max_tokens": None}
    assert [type(value) for value in given.values()] == [int, float, float, type(None)]
    with pytest.raises(InputError):
        number("timeout", decimal.Decimal(3))


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "-1", "1e400", "x", "", "\u00b2", "\u0665", "1_0", "9" * 5000, "--", str(10**30)]
)
@pytest.mark.parametrize("option", ["limit", "sample", "repeats", "max-tokens", "timeout", "temperature", "coverage"])
def test_options_take_only_numbers_that_can_be_meant(
    option: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything else ends with 2 and tells the bounds, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", rows(1))
    (tmp_path / "two.yaml").write_text(SCORE)
    assert run(["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "fake", f"--{option}={text}"]) == 2
    assert f"{option.replace('-', '_')} must be {NUMBERS[option.replace('-', '_')]}" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.jsonl", "two.yaml"]


@pytest.mark.parametrize(
    "weights", ["truth=nan,style=0.5", "truth=\u0661,style=0", "truth=1e999,style=0", "truth=,style=1"]
)
def test_weights_are_numbers_from_0_to_1(weights: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A weight that is no such number is told with its criterion."""
    assert run(["judge", "x.jsonl", "--weights", weights]) == 2
    assert "the weight of truth must be a number from 0 to 1" in capsys.readouterr().err


def test_a_budget_of_many_digits_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs of a budget have the same bounds."""
    assert run(["render", "x.jsonl", "--rubric", "hhh", "--pairs", f"budget:{'9' * 5000}"]) == 2


_ODD = (1, 1.5, True, b"x", [], {}, object(), [None], ("a", 1), "\0", "\ud800", float("nan"), 10**400)
_COMPARED = [
    {"system_a": "x", "system_b": "y", "preference": "A"},
    {"system_a": "x", "system_b": "y", "preference": "B"},
]


@pytest.mark.parametrize("odd", _ODD, ids=lambda odd: f"{odd!r:.12}".encode("ascii", "replace").decode())
def test_a_figure_asked_for_by_a_value_of_the_wrong_kind_is_an_input_error(odd: Any, tmp_path: Path) -> None:
    """What is no run, column, kind, number or name of a figure is told as such, and never a traceback."""
    run, other = (evenhand.judge(rows(2), TWO, "fake", out=tmp_path / name) for name in ("a", "b"))
    labels = [{"id": "i0", "truth": 1}]
    asked: list[tuple[Any, tuple[Any, ...], tuple[str, ...]]] = [
        (evenhand.compare, ([run.folder, other.folder],), ("by", "test", "interval", "value")),
        (evenhand.variance, ([run.folder, other.folder],), ("value",)),
        (evenhand.judge_quality, ([run.folder, other.folder], labels), ("map", "value")),
        (run.summary, (), ("by", "value")),
        (run.agreement, (labels,), ("map", "by", "value")),
        (run.correction, (labels,), ("map", "by", "value", "method")),
        (evenhand.agreement, (labels, TWO), ("map", "by")),
        (table_ranking, (_COMPARED,), ("systems", "format", "ties", "interval")),
    ]
    for call, arguments, names in asked:
        for name in names:
            if not (odd == {} and name == "map"):
                with pytest.raises(InputError):
                    call(*arguments, **{name: odd})
    for call in (evenhand.compare, evenhand.variance, evenhand.judge_quality, evenhand.Run):
        for given in (odd, [odd]):
            with pytest.raises(InputError):
                call(given)
    if not isinstance(odd, list):
        for name in ("statistic", "require"):
            with pytest.raises(InputError):
                run.agreement(labels, **{name: odd})
        with pytest.raises(InputError):
            table_ranking(_COMPARED, control=odd)
    if not isinstance(odd, float | int) or isinstance(odd, bool) or not 0 < odd < 1e6:
        for call in (
            lambda: run.agreement(labels, width=odd),
            lambda: evenhand.compare([run.folder, other.folder], margin=odd),
        ):
            with pytest.raises(InputError, match="must be a number"):
                call()
