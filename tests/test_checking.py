"""Checking ratings: findings in order, counts that add up, and rows written with what was found."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from evenhand import check
from evenhand.checking import Finding
from evenhand.errors import InputError, ItemError
from evenhand.rubric.load import load_rubric

NAMES = ("harmless", "honest", "helpful", "overall")
GOOD = {
    "id": "g",
    **dict.fromkeys(NAMES, "better"),
    **{f"{n}_side": "A" for n in NAMES},
    "rank_a": 6,
    "rank_b": 3,
}
OFF = {**GOOD, "id": "off", "rank_a": 7}
SCORES = {"correctness": 0, "comprehensiveness": 7, "readability": 10}


def jsonl(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in rows), encoding="utf-8")
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_findings_say_where_and_what(tmp_path: Path) -> None:
    """A finding has the row (from 1), the line, the id, the rule, its severity and a message."""
    file = jsonl(tmp_path / "r.jsonl", GOOD, "", {**OFF, "difference": "minor"}, {**GOOD, "rank_b": 9, "id": None})
    found = list(check(file, "hhh"))
    assert [(f.row, f.line, f.id, f.rule, f.severity) for f in found] == [
        (2, 3, "off", "gap-label", "violation"),
        (2, 3, "off", "difference", "warning"),
        (3, 4, None, "illegal-value:rank_b", "violation"),
    ]
    assert found[0].message.startswith("Ranks 7 and 3 are 4 apart")


def test_counts_add_up() -> None:
    """The summary counts rows and findings, and for every rule the rows broken, checked and not checked, and why."""
    summary = check([GOOD, {**OFF, "errors_a": "minor"}, {**GOOD, "rank_a": "x"}], "hhh").summary()
    assert {name: summary[name] for name in ("rows", "bad_rows", "violations", "warnings", "rows_with_violations")} == {
        "rows": 3,
        "bad_rows": 0,
        "violations": 3,
        "warnings": 0,
        "rows_with_violations": 2,
    }
    rules = summary["rules"]
    assert all(count["checked"] + count["not_checked"] == 3 for count in rules.values())
    assert list(rules)[:-1] == [rule.id for rule in load_rubric("hhh").rules]
    told = {"severity": "violation", "broken": 1, "checked": 2, "not_checked": 1, "reason": "rank_a is missing"}
    assert rules["gap-label"] == told
    assert rules["cap-minor-errors:a"] == {**told, "checked": 1, "not_checked": 2, "reason": "errors_a is missing"}
    assert rules["unsafe-rank:a"]["checked"] == 0
    assert rules["illegal-value:rank_a"]["broken"] == 1


def test_a_check_is_lazy_and_reads_once() -> None:
    """Findings come as rows are read; a summary reads the rest, and does not count anything twice."""
    taken = []

    def rows() -> Any:
        for n in range(3_000):
            taken.append(n)
            yield {**OFF, "id": n}

    found = check(rows(), "hhh")
    assert [f.id for f in islice(found, 2)] == ["0", "1"]
    assert len(taken) < 1_100
    assert found.summary()["violations"] == found.summary()["rows"] == 3_000
    assert list(found) == []


def test_a_missing_required_column_is_an_input_error(tmp_path: Path) -> None:
    """The error names column, file and remedy; a value missing from one row is that row's violation."""
    bare = {n: v for n, v in GOOD.items() if n != "rank_b"}
    with pytest.raises(ItemError, match=r"r\.jsonl: no rank_b; columns: .*\n +--partial") as caught:
        list(check(jsonl(tmp_path / "r.jsonl", bare), "hhh"))
    assert caught.value.exit_code == 2
    assert [f.rule for f in check([bare, GOOD], "hhh")] == ["missing-value:rank_b"]
    partly = check([bare], "hhh", partial=True)
    assert list(partly) == []
    assert partly.summary()["rules"]["gap-label"]["reason"] == "rank_b is missing"


def test_a_column_of_another_field_is_never_proposed() -> None:
    """For a missing rank_a the other rank is no remedy, a column that is no field is."""
    bare = {n: v for n, v in GOOD.items() if n != "rank_a"}
    with pytest.raises(ItemError, match=r"no rank_a; .*\(--map rank_a=COLUMN\)"):
        list(check([bare], "hhh"))
    with pytest.raises(ItemError, match=r"no rank_a; .*\(--map rank_a=rankA\)"):
        list(check([{**bare, "rankA": 6}], "hhh"))


@pytest.mark.parametrize("column", ["type", "task", "kind"])
def test_the_type_of_question_gives_its_group(column: str) -> None:
    """Rules about the group are checked as `judge` does; a type that doesn't exist is a violation of its row."""
    mapping = {"type": "kind"} if column == "kind" else {}
    row = {"Rating": 9, "Reason": "好", column: "Counting"}
    found = check([row, {**row, column: "Sculpture"}], "alignmm-critic", map=mapping)
    findings = list(found)
    assert ("illegal-value:type", 2) in [(f.rule, f.row) for f in findings]
    lacking = [told for told in found.summary()["rules"].values() if told["reason"] == "group is missing"]
    assert all(told["not_checked"] <= 1 for told in lacking)


def test_ranks_alone_suggest_about_the_same_at_1(tmp_path: Path) -> None:
    """QH2: at ranks 1 apart a fitting label stays, and any other gives way to "about the same"."""
    rows = [{"rank_a": 6, "rank_b": 5, "overall": label} for label in (None, "better", "slightly better")]
    check(rows, "hhh", partial=True).write(tmp_path / "out.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["overall_suggested"], row["overall_side_suggested"]) for row in written] == [
        ("about the same", "tie"), ("about the same", "tie"), ("slightly better", "A"),
    ]  # fmt: skip


@pytest.mark.parametrize("label", ["slightly better", "better"])
def test_a_tie_against_the_first_preference_is_warned_about(label: str) -> None:
    """QH18: an overall tie though the first dimension has a preference, however slight, is a warning."""
    tied = {**GOOD, **dict.fromkeys(NAMES, "about the same"), **{f"{n}_side": "tie" for n in NAMES}, "rank_a": 3}
    (finding,) = check([{**tied, "harmless": label, "harmless_side": "A"}], "hhh")
    assert (finding.rule, finding.severity) == ("priority-tie", "warning")


def test_other_input_errors(tmp_path: Path) -> None:
    """No rows, no such file, an unknown field or a rubric's option that does not exist."""
    with pytest.raises(ItemError, match="no rows"):
        list(check([], "hhh"))
    for options in ({"map": {"rank": "x"}}, {"label_set": "x"}, {"variant": {"x": 1}}, {"format": "xml"}):
        with pytest.raises(InputError):
            check([GOOD], "hhh", **options) if "format" not in options else check(tmp_path / "x", "hhh", **options)


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    """All other rows are checked, then the bad ones are an error with their lines; skipped ones are counted."""
    file = jsonl(tmp_path / "r.jsonl", OFF, "{", GOOD, "[]")
    found: list[Finding] = []
    checked = check(file, "hhh")
    with pytest.raises(ItemError, match=r"r\.jsonl:2: not JSON.*\n.*r\.jsonl:4: not a JSON object"):
        found.extend(checked)
    assert checked.summary()["violations"] == 1
    skipping = check(file, "hhh", skip_bad=True)
    assert [f.row for f in skipping] == [1]
    assert (skipping.summary()["rows"], skipping.bad) == (2, 2)
    with pytest.raises(ItemError, match="row 1: a int where"):
        list(check([5], "hhh"))


def test_many_bad_rows_are_not_all_listed(tmp_path: Path) -> None:
    """The first hundred are shown, the rest counted."""
    with pytest.raises(ItemError, match="and 50 more"):
        list(check(jsonl(tmp_path / "r.jsonl", GOOD, *["{"] * 150), "hhh"))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_rows_are_written_with_findings_and_suggestions(ending: str, tmp_path: Path) -> None:
    """The input's columns stay; violations, warnings, messages and suggested labels follow, marked as suggested."""
    rows = [{**GOOD, "turns": [1]}, {**OFF, "turns": [], "difference": "minor"}, {**GOOD, "rank_a": 3, "turns": None}]
    target = tmp_path / f"out.{ending}"
    seen: list[Finding] = []
    assert check(rows, "hhh").write(target, on_finding=seen.append) == 3
    assert [f.rule for f in seen] == ["gap-label", "difference", "gap-label"]
    if ending == "parquet":
        import pyarrow.parquet

        written = pyarrow.parquet.read_table(target).to_pylist()
    elif ending == "jsonl":
        written = [json.loads(line) for line in target.read_text().splitlines()]
    else:
        with target.open(newline="") as file:
            written = list(csv.DictReader(file, delimiter="," if ending == "csv" else "\t"))
    added = ["violations", "warnings", "messages", "overall_suggested", "overall_side_suggested"]
    assert [name for name in written[1] if name in added] == added
    assert [[row[name] for name in added] for row in written] == [
        ["", "", "", "better", "A"],
        ["gap-label", "difference", " ".join(f.message for f in seen[:2]), "significantly better", "A"],
        ["gap-label", "", seen[2].message, "about the same", "tie"],
    ]
    assert written[1]["turns"] == ([] if ending == "jsonl" else "[]")
    assert str(written[1]["rank_a"]) == "7"


def test_columns_of_ours_do_not_hide_the_inputs(tmp_path: Path) -> None:
    """A column of the input that has the name of an added one is kept as input_NAME; a check can be checked again."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    check([OFF], "hhh").write(first)
    check(first, "hhh").write(second)
    (row,) = read_csv(second)
    assert row["input_violations"] == row["violations"] == "gap-label"
    assert row["rank_a"] == "7"


def test_a_rubric_without_suggestions(tmp_path: Path) -> None:
    """Scores are checked as well; a rubric that suggests nothing adds no such column."""
    check([SCORES], "doc-qa").write(tmp_path / "x.jsonl")
    row = json.loads((tmp_path / "x.jsonl").read_text())
    assert list(row) == [*SCORES, "violations", "warnings", "messages"]
    assert row["warnings"]


def test_labels_are_written_in_another_set(tmp_path: Path) -> None:
    """Every preference gets a column in the label set; empty where a row has none."""
    tie = {
        **GOOD,
        "overall": "about the same",
        "overall_side": "tie",
        "rank_a": 3,
        "honest": "better",
        "honest_side": "B",
    }
    check([GOOD, tie, {**GOOD, "overall": "x"}], "hhh").write(tmp_path / "x.jsonl", labels="helpsteer2")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [row["overall_helpsteer2"] for row in rows] == [-2, 0, None]
    assert rows[1]["honest_helpsteer2"] == 2
    with pytest.raises(InputError, match="no labels that llama2 could stand for"):
        check([SCORES], "doc-qa").write(tmp_path / "y.jsonl", labels="llama2")


def test_strengths_are_checked_against_ranks(tmp_path: Path) -> None:
    """With a label set the rules see what its values stand for; the file keeps them as they are."""
    row = {"id": "s", "rank_a": 2, "rank_b": 6, "strength": -3}
    options: dict[str, Any] = {"map": {"overall": "strength"}, "label_set": "helpsteer2", "partial": True}
    assert [f.rule for f in check([row], "hhh", **options)] == ["rank-direction"]
    check([row], "hhh", **options).write(tmp_path / "x.jsonl")
    assert json.loads((tmp_path / "x.jsonl").read_text())["strength"] == -3


def test_nothing_is_written_when_it_can_not_be_whole(tmp_path: Path) -> None:
    """A bad target is refused before the rows are read; a bad row leaves no file."""
    for target in ("x.doc", "no/x.csv"):
        with pytest.raises(InputError):
            check(iter([GOOD]), "hhh").write(tmp_path / target)
    file = jsonl(tmp_path / "r.jsonl", GOOD, "{")
    for ending in ("jsonl", "csv"):
        with pytest.raises(ItemError):
            check(file, "hhh").write(tmp_path / f"x.{ending}")
    assert [p.name for p in tmp_path.iterdir()] == ["r.jsonl"]
