"""The language of rule conditions: what it allows, what it refuses, what a missing value does, how it counts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenhand.errors import RubricError
from evenhand.expressions import MAX_LENGTH, UNDECIDED, Environment, Missing, check_expression, compile_expression
from evenhand.functions import FUNCTIONS, blank, cjk, kind, missing_quotes, words

ENV: dict[str, Any] = {
    "n": 3,
    "m": 5,
    "f": 0.5,
    "yes": True,
    "no": False,
    "label": "better",
    "text": "two words",
    "empty": " \n\t\u3000",
    "tags": ["safety", "truth"],
    "none": None,
    "评分": 7,
}


def evaluate(text: str, env: Mapping[str, Any] = ENV) -> Any:
    return compile_expression(text).run(Environment({k: v for k, v in env.items() if v is not None}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 3),
        ("评分 > 6", True),
        ("'a\\'b'", "a'b"),
        ("1.5", 1.5),
        ("True", True),
        ("n == 3 and label != 'worse'", True),
        ("n < m <= 5 < 6", True),
        ("n < m < 4", False),
        ("no or n", 3),
        ("yes and 0", 0),
        ("not n", False),
        ("n + m - 1", 7),
        ("n * m / 2", 7.5),
        ("m // n", 1),
        ("m % n", 2),
        ("-n", -3),
        ("-(n - m)", 2),
        ("yes + yes + no", 2),
        ("label in ['better', 'worse']", True),
        ("n in (1, -3, 3.0)", True),
        ("n not in {1, 2}", True),
        ("n in []", False),
        ("tags in ['a', 'b']", False),
        ("'safety' in tags", True),
        ("'words' in text", True),
        ("'big' if n > 4 else 'small'", "small"),
        ("abs(n - m)", 2),
        ("min(n, m, 1)", 1),
        ("max(n, m)", 5),
        ("count(tags)", 2),
        ("chars(label)", 6),
        ("words(text) * 2", 4),
        ("missing_quotes(tags, text)", 2),
        ("given(n) and not given(none)", True),
        ("blank(empty) and blank(none) and not blank(text)", True),
        ("turns(tags)", 2),
        (" \t( n\n  > 2 )\r\n", True),
        ("n > 2  # a comment", True),
    ],
)
def test_an_allowed_expression_has_its_python_value(text: str, value: object) -> None:
    """Each allowed construct is accepted and means what it means in Python."""
    assert check_expression(text, ENV) == []
    result = evaluate(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n.real", "attributes"),
        ("().__class__", "attributes"),
        ("tags[0]", "subscripts"),
        ("lambda: 1", "lambda"),
        ("[x for x in tags]", "ListComp"),
        ("count(x for x in tags)", "GeneratorExp"),
        ("{'a': 1}", "Dict"),
        ("f'{n}'", "f-strings"),
        ("(x := 1)", "assignment"),
        ("max(*tags, 1)", "stars"),
        ("max(n, m, key=abs)", "no named arguments"),
        ("2 ** n", "only + - * / // %"),
        ("n << 1", "only + - * / // %"),
        ("n | m", "only + - * / // %"),
        ("~n", "only + - * / // %"),
        ("+n", "only + - * / // %"),
        ("n @ m", "only + - * / // %"),
        ("'a' * 9", "a text can't be calculated with"),
        ("'%999999d' % n", "a text can't be calculated with"),
        ("-'a'", "a text can't be calculated with"),
        ("[1, 2]", "right of `in`"),
        ("[1] == tags", "right of `in`"),
        ("(1, 2) in tags", "right of `in`"),
        ("n in [m]", "only hold texts and numbers"),
        ("n in [[1]]", "only hold texts and numbers"),
        ("n in [-'a']", "only hold texts and numbers"),
        ("n in [None]", "given(x)"),
        ("n in [1j]", "type complex"),
        ("label in ('better')", "as a list"),
        ("n is 3", "`is` is not allowed"),
        ("n is not None", "given(x)"),
        ("n == None", "given(x)"),
        ("None != n", "given(x)"),
        ("None", "branch"),
        ("n and None", "branch"),
        ("b'x'", "type bytes"),
        ("...", "type ellipsis"),
        ("9999999999999999", "number above"),
        ("1e999", "number this large"),
        ("print(n)", "unknown function 'print'; known: abs"),
        ("n(1)", "unknown function 'n'"),
        ("text.strip()", "listed functions"),
        ("abs()", "takes 1 argument, not 0"),
        ("max(n)", "at least 2 arguments, not 1"),
        ("missing_quotes(tags)", "takes 2 arguments, not 1"),
        ("given(n + 1)", "takes a name"),
        ("blank('x')", "takes a name"),
        ("blank", "blank(...)"),
        ("n, m", "right of `in`"),
        ("n = 3", "to compare write =="),
        ("n && m", "write and, or, not"),
        ("!yes", "write and, or, not"),
        ("yes ? 1 : 2", "write and, or, not"),
        ("true", "did you mean True"),
        ("import os", "not a valid expression"),
        ("n; m", "not a valid expression"),
        ("n > 2 # note\n and m", "comment"),
        ("", "empty"),
        (" \n", "empty"),
    ],
)
def test_anything_else_is_refused_with_its_reason(text: str, message: str) -> None:
    """Each construct outside the language is a message that names it, and a compile error."""
    mistakes = check_expression(text, ENV)
    assert message in " | ".join(mistakes)
    with pytest.raises(RubricError) as caught:
        compile_expression(text, ENV)
    assert [problem.message for problem in caught.value.problems] == mistakes


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "(" * 240 + "1" + ")" * 240,
        "-" * 400 + "1",
        "not " * 120 + "n",
        "n+" * 200 + "n",
        "9**9**9",
        "9" * 10_000,
        "9" * 499,
        "0x" + "f" * 400,
        "abs(" * 100 + "n" + ")" * 100,
        "1 if n else " * 41 + "2",
        "n\0m",
        "\0",
        "\ud800",
        "'\ud800' == label",
        "\udfff" * 499,
        "'" * 499,
        "\\",
        "[" * 499,
        "{" * 499,
        "f'" + "{" * 400,
        "().__class__.__bases__[0].__subclasses__()",
        "__import__('os').system('true')",
        " ".join(f"x{i} or" for i in range(70)) + " x",
    ],
)
def test_hostile_expressions_are_refused_at_once(text: str) -> None:
    """Deep nesting, huge constants, nulls and surrogates end as messages, quickly."""
    start = time.perf_counter()
    assert check_expression(text, [f"name_{i}" for i in range(60)])
    assert time.perf_counter() - start < 2  # takes a few ms; the bound only has to survive a busy machine


@pytest.mark.parametrize("text", ["'\\d' == label", "1if n else 2", "n == 1 or(2)"])
def test_no_python_warning_leaks(text: str, recwarn: pytest.WarningsRecorder) -> None:
    """What Python would warn about while parsing stays silent."""
    assert check_expression(text, ENV) == []
    assert not recwarn.list


def test_every_mistake_is_listed_with_its_column() -> None:
    """Columns are 1-based and count characters, not bytes; all mistakes of one expression come at once."""
    assert check_expression("  '评' == lable and count(x.y) > blnk(n)", ENV) == [
        "column 10: unknown name 'lable'; did you mean label?",
        "column 26: attributes (a.b) are not allowed",
        "column 33: unknown function 'blnk'; did you mean blank?",
    ]


def test_an_unknown_name_is_listed_once() -> None:
    """A name misspelt several times is one mistake."""
    assert len(check_expression("zzz > 1 and zzz < 3", ENV)) == 1


def test_the_length_limit_counts_what_is_written() -> None:
    """500 characters pass, white space around them aside; 501 don't."""
    fits = "n == 1".ljust(MAX_LENGTH - 1) + "0"
    assert "longer" not in " ".join(check_expression(f"  {fits}  ", ENV))
    assert check_expression(fits + "0", ENV) == ["longer than 500 characters; split it with `let`"]


def test_names_are_listed_in_order_of_use() -> None:
    """`Expression.names` holds each name once, functions left out."""
    assert compile_expression("abs(m - n) > f and n < m and blank(text)").names == ("m", "n", "f", "text")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("none", "missing"),
        ("absent", "missing"),
        ("none == 1", "missing"),
        ("1 != none", "missing"),
        ("not none", "missing"),
        ("-none", "missing"),
        ("none + 1", "missing"),
        ("none in [1]", "missing"),
        ("1 < none < 2", "missing"),
        ("3 < n < none", False),
        ("none and no", "missing"),
        ("no and none", False),
        ("none or yes", "missing"),
        ("yes or none", True),
        ("1 if none else 2", "missing"),
        ("1 if yes else none", 1),
        ("none if no else 2", 2),
        ("none if yes else 2", "missing"),
        ("None if yes else 2", "missing"),
        ("None if no else 2", 2),
        ("abs(none)", "missing"),
        ("count(none)", "missing"),
        ("words(none)", "missing"),
        ("missing_quotes(tags, none)", "missing"),
        ("blank(none)", True),
        ("blank(absent)", True),
        ("given(none)", False),
        ("given(absent)", False),
        ("turns(none)", 0),
        ("turns(absent)", 0),
        ("given(none) and none > 3", False),
    ],
)
def test_what_a_missing_value_does(text: str, outcome: object) -> None:
    """A missing name makes the expression missing, unless it isn't reached or blank, given or turns asks for it."""
    if outcome == "missing":
        with pytest.raises(Missing):
            evaluate(text)
    else:
        assert evaluate(text) == outcome


def test_the_missing_name_is_named() -> None:
    """`Missing` says which name had no value."""
    with pytest.raises(Missing, match=r"^absent$"):
        evaluate("n > 1 and absent")


@pytest.mark.parametrize(
    "text",
    [
        "label < n",
        "n < label",
        "text + text == text",
        "text * n == text",
        "text % n == text",
        "n * tags == tags",
        "n / 0",
        "n // no",
        "n % 0",
        "n in m",
        "n in text",
        "abs(label)",
        "max(n, label)",
        "count(text)",
        "words(n)",
        "chars(tags)",
        "turns(text)",
        "missing_quotes(text, text)",
        "huge * huge",
        "big + 1.0",
        "big * big == 1",
    ],
)
def test_values_that_do_not_fit_leave_the_expression_undecided(text: str) -> None:
    """A clash of types, a division by zero or a number out of range raises one of `UNDECIDED`."""
    with pytest.raises(UNDECIDED):
        evaluate(text, ENV | {"huge": 1e300, "big": 10**400})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" ,.!?。,!? ", 0),
        ("two words", 2),
        ("don't stop", 2),
        ("it’s", 1),
        ("步骤正确", 4),
        ("用GPT-4打分", 5),
        ("API 调用 works", 4),
        ("ひらがなとカタカナ", 9),
        ("漢字々〇", 4),
        ("한국어 문장", 2),
        ("𠀀𠀁", 2),
        ("naïve café", 2),
        ("v2 2024", 2),
        ("「引用」、結論。", 4),
    ],
)
def test_words_know_chinese_and_japanese(text: str, count: int) -> None:
    """A Han character or kana is a word; other word characters make a word together; punctuation is none."""
    assert words(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("plain", 0), ("、。!・「」", 0), ("好 good", 1), ("カナ", 2), ("𠀀", 1), ("한국어", 0), ("﨑", 1)],
)
def test_cjk_counts_characters_not_punctuation(text: str, count: int) -> None:
    """Han characters and kana count, CJK punctuation and Hangul don't."""
    assert cjk(text) == count


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, True),
        ("", True),
        (" \n\u3000\xa0", True),
        ([], True),
        ((), True),
        ("0", False),
        (0, False),
        (False, False),
    ],
)
def test_blank(value: object, expected: bool) -> None:
    """Missing, white space and empty lists are blank; a number or truth value never is."""
    assert blank(value) is expected


@pytest.mark.parametrize(
    ("quotes", "missing"),
    [
        ([], 0),
        (["stop the cluster"], 0),
        (["Stop the\n cluster  now"], 1),
        (["then\tpress   Stop"], 0),
        (["", "  "], 2),
        (["停止集群", "停止 集群"], 1),
        (["stop the cluster", "start it", ""], 2),
    ],
)
def test_missing_quotes_fold_white_space(quotes: list[str], missing: int) -> None:
    """Line breaks don't hide a quote, letter case and wording do count, and a blank quote is no quote."""
    assert missing_quotes(quotes, "To stop the  cluster,\nthen press\nStop. 停止集群") == missing


def test_missing_quotes_refuses_what_is_no_text() -> None:
    """An entry that is not a text is a clash, not a missing quote."""
    with pytest.raises(TypeError, match="needs a text, not a number"):
        missing_quotes([1], "1")  # type: ignore[list-item]


def test_every_function_is_documented_and_callable() -> None:
    """Each function of the language has one line of documentation and accepts its least number of arguments."""
    for name, function in FUNCTIONS.items():
        assert function.doc, name
        arguments = ", ".join(["n"] * function.least)
        assert check_expression(f"{name}({arguments})", ENV) == []


def test_kinds_have_names() -> None:
    """Clashes speak of texts and numbers."""
    assert [kind(v) for v in ("", 1, True, [], {})] == ["a text", "a number", "a truth value", "a list", "dict"]


PIECES = [
    "n",
    "m",
    "None",
    "'a'",
    "1",
    "(",
    ")",
    "[",
    "]",
    " in ",
    " and ",
    "not ",
    "-",
    "*",
    "**",
    ".",
    ",",
    "==",
    "<",
]
PIECES += ["blank(", "min(", " if ", " else ", "lambda", ":", "{", "}", "\\", "\n", "#", "é", "评", "\ud800", "\0", "`"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
def test_any_text_gives_messages_never_an_exception(text: str) -> None:
    """Whatever a rubric file holds, checking returns a list of texts, and compiling agrees with it."""
    mistakes = check_expression(text, ENV)
    assert all(isinstance(mistake, str) and mistake for mistake in mistakes)
    if not mistakes:
        try:
            evaluate(text)
        except (Missing, *UNDECIDED) as error:
            assert str(error)


NUMBERS = st.sampled_from(["n", "m", "f", "yes", "no", "0", "2", "7", "1.25", "True"])
TEXTS = st.sampled_from(["label", "text", "'better'", "''", "'评 分'"])


def _grow_number(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%"])
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda a: f"-({a})"),
        inner.map(lambda a: f"abs({a})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
    )


def _grow_condition(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "==", "!="]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda a: f"(not {a})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
    )


NUMERIC = st.recursive(NUMBERS, _grow_number, max_leaves=6)
ORDER = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
TESTS = st.one_of(
    st.tuples(NUMERIC, ORDER, NUMERIC).map(" ".join),
    st.tuples(NUMERIC, ORDER, NUMERIC, ORDER, NUMERIC).map(" ".join),
    st.tuples(TEXTS, ORDER, TEXTS).map(" ".join),
    st.tuples(TEXTS, ORDER, NUMERIC).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["in", "not in"])).map(lambda t: f"{t[0]} {t[1]} ('better', 'worse', 1, -2.5)"),
    st.tuples(NUMERIC, st.sampled_from(["in", "not in"])).map(lambda t: f"{t[0]} {t[1]} [1, 'better', -2, True]"),
).map(lambda test: f"({test})")
EXPRESSIONS = st.one_of(NUMERIC, st.recursive(TESTS, _grow_condition, max_leaves=5))


@given(EXPRESSIONS, st.integers(-9, 9), st.integers(-9, 9), st.floats(-9, 9), st.booleans(), st.text(max_size=3))
def test_values_are_those_of_python(text: str, n: int, m: int, f: float, yes: bool, label: str) -> None:
    """Over complete values an allowed expression gives what Python's own evaluation gives, errors included."""
    assume(len(text) <= MAX_LENGTH)
    env = {"n": n, "m": m, "f": f, "yes": yes, "no": not yes, "label": label, "text": "评 分"}
    names = {"abs": abs, "min": min, "max": max}
    try:
        expected = eval(text, {"__builtins__": {}, **names}, env)
    except (TypeError, ZeroDivisionError):
        with pytest.raises(UNDECIDED):
            evaluate(text, env)
    else:
        result = evaluate(text, env)
        assert result == expected
        assert type(result) is type(expected)
