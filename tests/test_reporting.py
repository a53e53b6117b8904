"""What a report says: its figures are those of a summary, and every count is that of the rows it leads to."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from evenhand import Run, compare, write_report
from evenhand.agreeing import read_labels
from evenhand.cli.main import run
from evenhand.errors import EvenhandError, InputError, UnknownNameError
from evenhand.facets import Facet, FacetTable, RunRows
from evenhand.inspection import inspect_item
from evenhand.report.plain import flat
from evenhand.report.sections import Sections
from evenhand.reported import Reported, ReportedRun
from evenhand.store import Store
from evenhand.verdict import Distribution, FieldOutcome
from rubric_texts import PAIR, rubric
from runs import GOOD, LIE, SCORE, priced, rows, run_it, unpriced, write_jsonl, write_script

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A run with a broken rule, an unreadable reply, a value out of range, a blank answer and a bad row."""
    script = write_script(
        tmp_path / "script.jsonl", ("It is 3.", LIE), ("It is 4.", "no idea"),
        ("It is 5.", {**GOOD, "truth": 9}), (None, GOOD),
    )  # fmt: skip
    given = [{**row, "system": f"s{n % 2}"} for n, row in enumerate(rows(9))]
    given[7]["answer"] = ""
    del given[8]["question"]
    run_it(given, rubric(SCORE), script, tmp_path / "run", skip_bad=True, repeats=2)
    return tmp_path / "run"


def reported(
    store: Store, folder: Path, by: str = "system", labels: Path | None = None
) -> tuple[ReportedRun, dict[str, Any]]:
    """A run as reports have it, and its figures."""
    table = FacetTable()
    one = ReportedRun(str(folder), Run(folder).rubric, store, [by], by, table, "stated")
    if labels is not None:
        one.labels = read_labels(str(labels), one.rubric)
    return one, Reported([one], table).facts()["runs"][0]


def pairs(folder: Path) -> Path:
    """A run of the recorded pairs."""
    judge = f"replay:{ROOT / 'docs' / 'recorded' / 'hhh.jsonl'}"
    run_it(str(ROOT / "examples" / "hhh.jsonl"), "hhh", judge, folder, reason=False, re_ask=False)
    return folder


def test_figures_are_those_of_the_summary(mixed: Path) -> None:
    """The summary of a report is the run's own, and so is each slice's."""
    with Store.open(mixed) as store:
        _, told = reported(store, mixed)
    assert told["summary"] == Run(mixed).summary()
    assert told["by"]["system"] == Run(mixed).summary(by="system")["by"]
    assert told["agreement"] is None and told["ranking"] is None


def test_facets_add_up_to_the_summary(mixed: Path, tmp_path: Path) -> None:
    """Over all rows, what each row can be found by occurs as often as the summary counts it."""
    for folder in (mixed, pairs(tmp_path / "pairs")):
        told = Run(folder).summary()
        table = FacetTable()
        with Store.open(folder) as store:
            for row in RunRows(store, Run(folder).rubric, "r", "stated", [], details=False):
                table.add(row.facets)
        found: dict[str, Counter[str]] = {}
        for facet, n in table.counts.items():
            found.setdefault(facet.kind, Counter())[facet.name] += n
        assert found["count"]["planned"] == told["planned"]
        assert found["count"]["scored"] == told["scored"]
        assert found["count"]["not scored"] == told["planned"] - told["scored"]
        for name in ("set_in_code", "re_asked", "inconsistent", "flips"):
            assert found["count"][name] == told.get(name, 0)
        for kind, name in (("failure", "failures"), ("rule", "violations"), ("warning", "warnings")):
            assert dict(found.get(kind, {})) == {key: n for key, n in told[name].items() if n}
        for name, fact in {**told["criteria"], **told["fields"]}.items():
            assert found["value"][name] == found["valued"][name] == fact["n"]
            for label, n in fact.get("counts", {}).items():
                assert table.counts[Facet("value", name, label)] == n


@pytest.mark.parametrize("kind", ["scores", "pairs", "systems"])
def test_every_number_leads_to_rows_that_hold_it(kind: str, mixed: Path, tmp_path: Path) -> None:
    """A count is the number of times that the rows behind it hold what it counts, a sum that of their column.

    Every other figure leads somewhere too, unless it is 0.
    """
    folder = mixed if kind == "scores" else tmp_path / "pairs"
    if kind == "pairs":
        pairs(folder)
    if kind == "systems":
        run_it(str(ROOT / "examples" / "many.jsonl"), "hhh", "fake", folder, pairs="all")
    priced(folder)
    labels = write_jsonl(tmp_path / "labels.jsonl", said_by_people()) if kind == "scores" else None
    with Store.open(folder) as store:
        one, told = reported(store, folder, "system" if kind == "scores" else "id", labels)
        behind = list(one.again())
    assert (told["ranking"] is not None) == (kind == "systems")
    linked = 0
    for section in Sections(told, one.rubric, several=False):
        for cell in (cell for table in section.tables for row in table.rows for cell in row):
            leads = cell.facets or cell.either
            assert leads or not cell.value or section.title == "Judge and rubric", (section.title, cell)
            rows_of = [row for row in behind if all(facet in row.facets for facet in cell.facets)]
            assert rows_of or not cell.facets, (section.title, cell)
            if cell.sort and isinstance(cell.value, int):
                assert cell.value == sum(row.cells[cell.sort] or 0 for row in rows_of), (section.title, cell)
            elif cell.facets and not cell.either and isinstance(cell.value, int):
                what = [f for f in cell.facets if f.kind not in ("column", "run")] or [Facet("run", one.name)]
                assert len(what) == 1  # as the page counts, else rows
                assert cell.value == sum(row.facets[what[0]] for row in rows_of), (section.title, cell)
                linked += 1
    assert linked > 20


def test_broken_rules_are_told_as_they_came(tmp_path: Path) -> None:
    """A rule is shown by the first message that a verdict broke it with, its values filled in; so are test cases."""
    text = SCORE.replace("a clear lie", "truth {truth} and style {style}")
    run_it(rows(3), rubric(text), write_script(tmp_path / "script", (None, LIE)), tmp_path / "run", re_ask=False)
    told = write_report(tmp_path / "run", tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| lie | violation | 3 | truth 0 and style 4 |" in told
    page = write_report(tmp_path / "run", tmp_path / "r.html").read_text(encoding="utf-8")
    assert "truth 0 and style 4" in page and "{truth}" not in page
    suites = ElementTree.parse(write_report(tmp_path / "run", tmp_path / "r.xml")).getroot()
    assert [case.text for case in suites.iter("failure")] == ["truth 0 and style 4"] * 3


@pytest.mark.parametrize("free", [True, False])
def test_cost_leads_to_the_calls_like_tokens(free: bool, tmp_path: Path) -> None:
    """Money that is nothing, or not known, leads to the calls behind it as tokens do."""
    run_it(rows(3), rubric(SCORE), "fake", tmp_path / "run")
    if not free:
        unpriced(tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        one, told = reported(store, tmp_path / "run", "id")
    tables = [table for section in Sections(told, one.rubric, several=False) for table in section.tables]
    took = {row[0].text: row[1] for table in tables if table.caption == "What the run took" for row in table.rows}
    assert took["cost"].text == ("$0.00" if free else "unknown")
    assert took["cost"].facets == took["prompt tokens"].facets == (Facet("count", "calls"),)
    assert took["cost per 1,000 items"].facets == (Facet("count", "asked"),)


def said_by_people() -> list[dict[str, Any]]:
    """Labels of a run of nine items by two people, who differ on one; the judge differs from both on another."""
    told = {"ann": {4: 2}, "bob": {}}
    return [{"id": f"i{n}", "rater": who, "truth": other.get(n, 3)} for who, other in told.items() for n in range(8)]


def test_tokens_that_no_reply_told_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are no zeros, in the page as in ``show``; and what a pair prefers follows the headline."""
    folder = pairs(tmp_path / "run")
    page = write_report(folder, tmp_path / "r.md").read_text(encoding="utf-8")
    for name in ("prompt", "completion", "cached"):
        assert f"| {name} tokens | not known |" in page
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings[:2] == ["## Headline", "## Preference and order"]
    assert run(["show", str(folder)]) == 0
    assert "tokens unknown; cost" in capsys.readouterr().out


def test_confusion_leads_to_the_items_of_each_pair_of_values(mixed: Path, tmp_path: Path) -> None:
    """What judge and people say stands in a table, each of whose counts leads to as many verdicts."""
    with Store.open(mixed) as store:
        one, told = reported(store, mixed, labels=write_jsonl(tmp_path / "labels.jsonl", said_by_people()))
    assert told["labels"]["truth: judge and people"] == told["agreement"]["fields"]["truth"]["confusion"]["n"]
    (table,) = (
        table
        for section in Sections(told, one.rubric, several=False)
        for table in section.tables
        if table.caption == "truth: judge (rows) and most people (columns)"
    )
    counts = [cell for row in table.rows for cell in row[1:] if cell.value]
    assert sum(cell.value or 0 for cell in counts) == told["labels"]["truth: judge and people"]
    assert all(one.facets.counts[cell.facets[0]] == cell.value for cell in counts)
    assert any(cell.facets[0].value == "judge 0, people 3" for cell in counts)


def test_report_without_labels_says_not_validated(mixed: Path, tmp_path: Path) -> None:
    """Without labels the report says so in words; with labels it has the figures of agreement."""
    page = write_report(mixed, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "not validated" in page
    labels = write_jsonl(tmp_path / "labels.jsonl", [{"id": f"i{n}", "truth": 3} for n in range(6)])
    page = write_report(mixed, tmp_path / "r.html", labels=labels).read_text(encoding="utf-8")
    assert "not validated" not in page and "6: show people: labelled" in page
    told = json.loads(write_report(mixed, tmp_path / "r.json", labels=labels).read_text(encoding="utf-8"))["runs"][0]
    assert told["labels"] == {"labelled": 6, "truth: judge and people": 8, "truth: judge and people differ": 2}
    assert told["agreement"] == Run(mixed).agreement(labels)


def test_page_names_its_policy(mixed: Path, tmp_path: Path) -> None:
    """The page forbids itself everything but its own style and script, each by its hash."""
    page = write_report(mixed, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "default-src &#x27;none&#x27;" in page and "connect-src &#x27;none&#x27;" in page
    assert page.count("sha256-") == 2 and "unsafe" not in page
    assert "http://" not in page and "https://" not in page


def test_report_is_refused(mixed: Path, tmp_path: Path) -> None:
    """A name without a known ending, an unknown format or column, or a run given twice, is told before writing."""
    (tmp_path / "labels.json").write_text('[{"id": "i0", "truth": 3}]', encoding="utf-8")
    for out, how, error in (
        ("r.pdf", {}, InputError), ("r.html", {"to": "pdf"}, UnknownNameError),
        ("r.html", {"by": "nothing"}, UnknownNameError), ("no/r.html", {}, InputError),
        ("labels.json", {"labels": tmp_path / "labels.json"}, InputError),
        ("x" * 300 + ".html", {}, InputError), ("x\0.html", {}, InputError),
        ("run/run.sqlite", {"to": "md"}, InputError), ("run/lock", {"to": "md"}, InputError),
    ):  # fmt: skip
        with pytest.raises(error):
            write_report(mixed, tmp_path / out, **how)
    assert Run(mixed).summary()["rows"]
    with pytest.raises(EvenhandError, match="twice"):
        write_report([mixed, mixed], tmp_path / "r.html")
    assert "truth" in (tmp_path / "labels.json").read_text(encoding="utf-8")
    assert list(tmp_path.glob("*.html")) == [] and list(tmp_path.glob(".evenhand*")) == []


def test_columns_of_labels_need_labels(mixed: Path, tmp_path: Path) -> None:
    """What would be ignored is refused."""
    with pytest.raises(InputError, match="no labels are given"):
        write_report(mixed, tmp_path / "r.html", map={"truth": "x"})


def test_report_replaces_no_run(mixed: Path, tmp_path: Path) -> None:
    """The store of a run that is not in the report is refused as target, and stays."""
    run_it(rows(1), rubric(SCORE), "fake", tmp_path / "other")
    store = tmp_path / "other" / "run.sqlite"
    before = store.read_bytes()
    with pytest.raises(InputError, match="is a file of the run in"):
        write_report(mixed, store, to="md")
    assert store.read_bytes() == before


def test_report_replaces_nothing_that_it_is_made_of(mixed: Path, tmp_path: Path) -> None:
    """Input, labels and rubric stay, the rubric also where it was changed since or has another name; a report goes."""
    data = write_jsonl(tmp_path / "data.jsonl", rows(3))
    labels = write_jsonl(tmp_path / "labels.jsonl", [{"id": "i0", "truth": 3}])
    changed = tmp_path / "two.yml"
    changed.write_text(SCORE.replace("clear", "plain"), encoding="utf-8")
    copied = tmp_path / "rubric.txt"
    copied.write_text(SCORE, encoding="utf-8")
    run_it(str(data), rubric(SCORE), "fake", tmp_path / "other")
    for file, said in ((data, "is made of"), (labels, "is made of"), (changed, "is a rubric"), (copied, "is a rubric")):
        before = file.read_bytes()
        with pytest.raises(InputError, match=said) as error:
            write_report([mixed, tmp_path / "other"], file, to="md", labels=labels)
        assert error.value.hint and file.read_bytes() == before
    (tmp_path / "r.md").write_text("an earlier report", encoding="utf-8")
    assert write_report(mixed, tmp_path / "r.md").read_text(encoding="utf-8").startswith("# Report of")


def test_refusals_name_the_file_and_a_remedy(mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What can't be read or written is named, with what to do, in a line each; nothing is written."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.sqlite").write_bytes(b"no database" * 100)
    (tmp_path / "loop.md").symlink_to("loop.md")
    before, loop, out = sorted(tmp_path.iterdir()), tmp_path / "loop.md", tmp_path / "r.html"
    for run_folder, target, named, remedy in (
        (tmp_path / "missing", out, "missing is not a run folder", "evenhand judge"),
        (tmp_path / "empty", out, "empty is not a run folder", "evenhand judge"),
        (tmp_path / "damaged", out, "run.sqlite is damaged", "put back a copy"),
        (mixed, tmp_path / "r.pdf", "r.pdf: no known format", "end the name in .html"),
        (mixed, "-", "no format is given for standard output", "--to html|md|json|junit"),
        (mixed, tmp_path / "no" / "r.html", f"no folder {tmp_path / 'no'}", "make the folder first"),
        (mixed, tmp_path / "empty", "empty: it is a directory", "name a file in it"),
        (mixed, loop, "can't write", "another folder"),
        (mixed, tmp_path / ("x" * 300 + ".html"), "File name too long", "write to another file"),
    ):
        assert run(["report", str(run_folder), "--out", str(target)]) in (2, 4)
        said = capsys.readouterr().err
        assert named in said and remedy in said and "Traceback" not in said
    assert run(["report", str(mixed), str(mixed), "--out", str(out)]) == 2
    assert f"{mixed} is given twice" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_command_writes_the_page(mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``evenhand report`` writes the file and says so on standard error."""
    assert run(["report", str(mixed), "--out", str(tmp_path / "r.html")]) == 0
    told = capsys.readouterr()
    assert told.out == "" and "report written to" in told.err
    assert "a clear lie" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_report_goes_to_standard_output(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--out -`` prints the report and nothing else, and leaves no file of that name."""
    assert run(["report", str(mixed), "--out", "-", "--to", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["summary"] == Run(mixed).summary()
    assert not Path("-").exists()


def facts_by_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What ``show --json`` prints."""
    assert run(["show", str(folder), "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_json_has_the_figures_of_show(mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary in JSON equals ``show --json``."""
    told = json.loads(write_report(mixed, tmp_path / "r.json").read_text(encoding="utf-8"))
    assert told["runs"][0]["summary"] == facts_by_show(mixed, capsys)


def test_junit_has_the_figures_of_show(mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The properties in JUnit XML equal ``show --json``; rows are test cases with what is wrong with them."""
    suites = ElementTree.parse(write_report(mixed, tmp_path / "r.xml")).getroot()
    found = {p.get("name"): json.loads(p.get("value", "")) for p in suites.iter("property")}
    shown = dict(flat(facts_by_show(mixed, capsys), "summary"))
    assert {name: value for name, value in found.items() if name.startswith("summary.")} == shown
    cases = {case.get("name"): [(part.tag, part.get("message")) for part in case] for case in suites.iter("testcase")}
    assert cases["i0"] == [] and cases["i3"] == [("failure", "lie")] and cases["i4"] == [("error", "no_rating")]
    assert cases["row 9"] == [("error", "bad_row")]
    told = {name: suites.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert told == {"tests": "9", "failures": "1", "errors": "3", "skipped": "0"}


def test_markdown_has_the_figures_of_show(mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables in Markdown hold the means and counts of ``show --json``."""
    text = write_report(mixed, tmp_path / "r.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    row = {line[0]: line[1:] for line in reversed(cells)}
    shown = facts_by_show(mixed, capsys)
    for name, fact in {**shown["criteria"], "composite": shown["composite"]}.items():
        assert row[name][:3] == [f"{fact['mean']:.2f}", "{:.2f} to {:.2f}".format(*fact["ci"]), str(fact["n"])]
    assert row["planned (rows x repeats)"] == [str(shown["planned"])] and row["scored"] == [str(shown["scored"])]
    for name, n in {**shown["violations"], **shown["failures"]}.items():
        assert str(n) in row[name]
    assert "not validated" in text


def test_text_from_outside_is_no_markup(tmp_path: Path) -> None:
    """Markdown, HTML and XML in names stay text in Markdown and JUnit; what XML can't hold is an escape."""
    name = "<b>x</b> ![a](http:b) | `c` [d](e)"
    given = [{**row, "id": f"{name}\x07{n}", "system": name} for n, row in enumerate(rows(2))]
    run_it(given, rubric(SCORE), "fake", tmp_path / "run")
    text = write_report(tmp_path / "run", tmp_path / "r.md").read_text(encoding="utf-8")
    assert "\\<b\\>" in text and "<b>" not in text and "![" not in text and "[d](" not in text
    suites = ElementTree.parse(write_report(tmp_path / "run", tmp_path / "r.xml")).getroot()
    assert [case.get("name") for case in suites.iter("testcase")] == [f"{name}\\u0007{n}" for n in range(2)]
    page = write_report(tmp_path / "run", tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>" not in page and "&lt;b&gt;" in page


def test_item_shows_the_re_ask(mixed: Path, tmp_path: Path) -> None:
    """An item has the messages of its re-ask as they were sent, until rules change what it would say."""
    trial = inspect_item(mixed, "i3")["trials"][0]
    assert [message["role"] for message in trial["re_ask"]] == ["assistant", "user"]
    assert "lie: a clear lie" in trial["re_ask"][1]["content"]
    assert inspect_item(mixed, "i0")["trials"][0]["re_ask"] == []
    (tmp_path / "other.yaml").write_text(SCORE.replace("a clear lie", "another"), encoding="utf-8")
    assert run(["rescore", str(mixed), "--rubric", str(tmp_path / "other.yaml")]) == 0
    assert inspect_item(mixed, "i3")["trials"][0]["re_ask"] == []


def test_expected_values_count_for_the_nearest_legal_one(mixed: Path, tmp_path: Path) -> None:
    """Distributions of expected values add up to their n; a mean between two points counts for the nearer."""
    spread = FieldOutcome(3, distribution=Distribution({3: 0.7, 4: 0.3}, 0.0))
    with Store.open(mixed, write=True) as store:
        verdicts = [(key, v) for _, found in store.verdicts() for key, v in found.items() if v.value("truth") == 3]
        store.replace_verdicts((key, replace(v, fields={**v.fields, "truth": spread})) for key, v in verdicts)
    out = write_report(mixed, tmp_path / "r.json", value="expected")
    told = json.loads(out.read_text(encoding="utf-8"))["runs"][0]
    fact = told["summary"]["criteria"]["truth"]
    assert told["summary"] == Run(mixed).summary(value="expected")
    preset = fact["set_in_code"]
    assert told["distributions"]["truth"] == {"0": preset, "1": 0, "2": 0, "3": fact["n"] - preset, "4": 0}
    assert write_report(mixed, tmp_path / "r.html", value="expected").exists()


def test_columns_of_text_are_no_filters(tmp_path: Path) -> None:
    """A column of few short values is something to find rows by, also under --by; a column of texts is none."""
    given = [{**row, "kind": f"k{n % 2}", "note": f"n{n}", "long": "x" * 100} for n, row in enumerate(rows(40))]
    run_it(given, rubric(SCORE), "fake", tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        found = RunRows(store, Run(tmp_path / "run").rubric, "r", "stated", [], details=False)
        kinds = [{facet.value for facet in row.facets if facet[:2] == ("column", "kind")} for row in found]
    assert kinds == [{f"k{n % 2}"} for n in range(40)]
    assert found.texts == {"note", "long"}


def test_run_without_texts_or_verdicts_has_a_report(tmp_path: Path) -> None:
    """What was not kept or not scored is told, and stops no report."""
    run_it(rows(3), rubric(SCORE), "fake:garbage", tmp_path / "run", store_texts=False)
    text = write_report(tmp_path / "run", tmp_path / "r.md").read_text(encoding="utf-8")
    assert "Nothing was scored" in text
    assert write_report(tmp_path / "run", tmp_path / "r.html").exists()


@pytest.fixture
def two_judges(tmp_path: Path) -> list[Path]:
    """Two runs over the same four items: the second judge is strict about item 2, and can't be read on item 3."""
    first = write_script(tmp_path / "a.jsonl", ("It is 3.", "no idea"), (None, GOOD))
    second = write_script(
        tmp_path / "b.jsonl", ("It is 2.", {**GOOD, "truth": 0}), ("It is 1.", {**GOOD, "truth": 2}), (None, GOOD)
    )
    for name, judge in (("a", first), ("b", second)):
        run_it(rows(4), rubric(SCORE), judge, tmp_path / name)
    return [tmp_path / "a", tmp_path / "b"]


def test_runs_that_disagree_most_come_first(two_judges: list[Path], tmp_path: Path) -> None:
    """The items are ordered by their spread over the runs; what one run could not read is no difference."""
    told = json.loads(write_report(two_judges, tmp_path / "r.json").read_text(encoding="utf-8"))["together"]
    assert (told["items"], told["compared"], told["differ"]) == (4, 3, 2)
    assert [(one["id"], one["spread"]) for one in told["most"]] == [("i2", 3 / 4 / 2), ("i1", 1 / 4 / 2)]
    a, b = map(str, two_judges)
    assert told["most"][0]["values"] == {a: {"truth": 3, "style": 2}, b: {"truth": 0, "style": 2}}
    assert told["most"][1]["differ"] == ["truth"] and told["most"][1]["flips"] == {}
    assert told["comparisons"] == [compare(two_judges)] and told["not_compared"] == told["left_out"] == {}
    assert together_of(two_judges, tmp_path) == told
    assert row_of("i2", two_judges, tmp_path) == ["0.375", "truth 3", "truth 0"]


def together_of(runs: list[Path], tmp_path: Path) -> dict[str, Any]:
    """What a report tells of several runs together; it can be written in every form."""
    for name in ("r.html", "r.md", "r.xml"):
        write_report(runs, tmp_path / name)
    told = json.loads(write_report(runs, tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [one["summary"] for one in told["runs"]] == [Run(run).summary() for run in runs]
    together: dict[str, Any] = told["together"]
    return together


def row_of(own: str, runs: list[Path], tmp_path: Path) -> list[str]:
    """An item's row among the greatest differences, in Markdown."""
    text = write_report(runs, tmp_path / "r.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.partition("Greatest differences first")[2].splitlines() if f"| {own} |" in line)
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def test_runs_of_other_scales_share_no_field(tmp_path: Path) -> None:
    """Runs whose scales differ are told not to be comparable; nothing is made up for them, no chart has both."""
    run_it(rows(2), rubric(SCORE), "fake", tmp_path / "a")
    run_it(rows(2), rubric(SCORE.replace("[0, 4]", "[0, 9]")), "fake", tmp_path / "b")
    runs = [tmp_path / "a", tmp_path / "b"]
    told = together_of(runs, tmp_path)
    assert told["fields"] == [] and told["compared"] == 0 and told["most"] == [] and told["comparisons"] == []
    assert told["not_compared"] == {
        str(run): f"no other run has its criteria and scales (truth 0 to {top}, style 0 to {top})"
        for run, top in zip(runs, (4, 9), strict=True)
    }
    assert "(truth, style) on the same scale" in told["left_out"][str(runs[0])]
    page = write_report(runs, tmp_path / "r.md").read_text(encoding="utf-8")
    assert "Scores are not compared." in page and "No field is asked for in two runs on one scale." in page
    assert "| identity | backend fake |" in page
    assert "**truth (0 to 4) by run**" in page and "**truth (0 to 9) by run**" in page


def test_runs_that_can_be_compared_are(two_judges: list[Path], tmp_path: Path) -> None:
    """A run of another rubric, of pairs or of other questions is left out with its own reason; the others stay."""
    others = rubric(SCORE.replace("truth", "right"))
    run_it(rows(4), others, "fake", tmp_path / "c")
    run_it(str(ROOT / "examples" / "hhh.jsonl"), "hhh", "fake", tmp_path / "pairs")
    run_it([{**row, "question": "Else?"} for row in rows(4)], rubric(SCORE), "fake", tmp_path / "else")
    runs = [tmp_path / "else", *two_judges, tmp_path / "c", tmp_path / "pairs"]
    told = together_of(runs, tmp_path)
    first, a, b, c, pairs = map(str, runs)
    (compared,) = told["comparisons"]
    assert compared == compare(two_judges)
    question = f"its item i0 asks another question than the item of that id in {a}"
    assert told["not_compared"] == {
        first: question,
        c: "no other run has its criteria and scales (right 0 to 4, style 0 to 4)",
        pairs: "it judges pairs, which name the better one themselves",
    }
    assert set(told["left_out"]) == {first, pairs} and told["left_out"][first] == question
    assert {"field": "style", "runs": [first, a, b, c]} in told["fields"]
    assert {"field": "truth", "runs": [first, a, b]} in told["fields"]
    assert told["most"][0]["id"] == "i2" and first not in told["most"][0]["values"]
    text = write_report(runs, tmp_path / "r.md").read_text(encoding="utf-8")
    assert f"{pairs} is left out: it judges pairs" in text.replace("\\", "")
    assert "under different rubrics" in text


def test_each_two_runs_of_a_kind_are_compared(two_judges: list[Path], tmp_path: Path) -> None:
    """Of two rubrics with two runs each both are compared, each with its own."""
    others = rubric(SCORE.replace("[0, 4]", "[0, 9]"))
    for name in ("c", "d"):
        run_it(rows(4), others, "fake", tmp_path / name)
    nines = [tmp_path / "c", tmp_path / "d"]
    told = together_of([*two_judges, *nines], tmp_path)
    assert told["comparisons"] == [compare(two_judges), compare(nines)] and told["not_compared"] == {}
    assert [field["runs"] for field in told["fields"] if field["field"] == "truth"] == [
        list(map(str, two_judges)), list(map(str, nines)),
    ]  # fmt: skip


def test_versions_of_a_rubric_are_compared_and_told(tmp_path: Path) -> None:
    """Runs of two versions have figures, with a note; one that requires more of an item asks the same question."""
    run_it([{**row, "note": "n"} for row in rows(3)], rubric(SCORE), "fake", tmp_path / "a")
    more = SCORE.replace("question: text,", "note: text, question: text,").replace("mode:", "version: 2\nmode:")
    run_it([{**row, "note": "n"} for row in rows(3)], rubric(more), "fake", tmp_path / "b")
    told = together_of([tmp_path / "a", tmp_path / "b"], tmp_path)
    assert told["compared"] == 3 and told["comparisons"][0]["comparisons"][0]["pairs"] == 3
    assert "under different rubrics" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_runs_without_common_items_or_scores_say_so(tmp_path: Path) -> None:
    """No item in common, no score, criteria of labels: means stay, differences have their reason."""
    labels = SCORE.partition("preset:")[0].replace("range: [0, 4]", "values: [bad, good]")
    labels = labels.replace("weight: 0.75, ", "").replace("weight: 0.25, ", "")
    for name, items, text, judge in (
        ("a", rows(3), SCORE, "fake"), ("far", rows(3, 9), SCORE, "fake"), ("none", rows(3), SCORE, "fake:garbage"),
        ("l1", rows(3), labels, "fake"), ("l2", rows(3), labels, "fake"),
    ):  # fmt: skip
        run_it(items, rubric(text), judge, tmp_path / name)
    told = together_of([tmp_path / "a", tmp_path / "far"], tmp_path)
    assert set(told["left_out"].values()) == {"none of its items is in another run that asks for its fields"}
    assert [one["paired"] for one in told["comparisons"][0]["comparisons"]] == [False] * 3
    told = together_of([tmp_path / "a", tmp_path / "none"], tmp_path)
    assert (told["items"], told["compared"], told["left_out"]) == (3, 0, {})
    reasons = {one["difference"]["reason"] for one in told["comparisons"][0]["comparisons"]}
    assert reasons == {f"{tmp_path / 'none'} without any score"}
    told = together_of([tmp_path / "l1", tmp_path / "l2"], tmp_path)
    assert told["compared"] == 3 and set(told["not_compared"].values()) == {
        "none of its criteria has a scale of numbers"
    }


def test_flip_differs_from_a_side_that_holds(tmp_path: Path) -> None:
    """What changes with the order is told as such and counts as a difference from what doesn't, not from another flip.

    Only fields that differ are shown; numbers have one form, be they a mean of two orders or not.
    """
    pair = {"id": "p", "prompt": "q", "response_a": "x", "response_b": "y"}
    said = {"rank_a": 5, "rank_b": 3, "safe": "tie"}
    always = {**said, "overall": "A"}  # the first one, in whichever order
    for name, reply in (("a", always), ("b", {**said, "rank_a": 3, "overall": "tie"}), ("c", always)):
        judge = write_script(tmp_path / f"{name}.jsonl", (None, reply))
        run_it([pair], rubric(PAIR), judge, tmp_path / name, re_ask=False, reason=False)
    a, b, c = runs = [tmp_path / name for name in "abc"]
    told = together_of(runs, tmp_path)
    (one,) = told["most"]
    # of rank_a, rank_b, safe and overall: means 4, 3, 4 of 1 to 7 twice, the same, and a flip
    assert one["spread"] == pytest.approx((1 / 6 + 1 / 6 + 0 + 1) / 4)
    assert one["differ"] == ["rank_a", "rank_b", "overall"] and one["flips"] == {
        str(a): ["overall"],
        str(c): ["overall"],
    }
    assert one["values"][str(a)]["overall"] is None and one["values"][str(b)]["overall"] == "tie"
    flips, holds = "rank_a 4, rank_b 4, overall flips", "rank_a 3, rank_b 3, overall tie"
    assert row_of("p", runs, tmp_path)[1:] == [flips, holds, flips]
    assert together_of([a, c], tmp_path)["differ"] == 0


def test_many_systems_are_not_compared_each_with_each(tmp_path: Path) -> None:
    """A column of more values than anybody reads pairs of is told so, and costs no time; so is one system."""
    for systems, said in ((31, "system has 31 values"), (1, "Systems are not compared: ")):
        given = [{**row, "system": f"s{n % systems}"} for n, row in enumerate(rows(31))]
        run_it(given, rubric(SCORE), "fake", tmp_path / f"run{systems}")
        text = write_report(tmp_path / f"run{systems}", tmp_path / "r.md").read_text(encoding="utf-8")
        assert said in text and "Coverage by system" in text


def test_an_interrupted_run_is_called_unfinished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Trials that were not asked are told at the head, in show and in each form of report; a whole run says nothing."""
    run_it(rows(3), rubric(SCORE), "fake", tmp_path / "run")
    whole = Run(tmp_path / "run").summary()
    assert (whole["trials_asked"], whole["trials"]) == (3, 3)
    assert "nfinished" not in write_report(tmp_path / "run", tmp_path / "r.md").read_text(encoding="utf-8")
    with sqlite3.connect(tmp_path / "run" / "run.sqlite") as store:
        store.execute("DELETE FROM trial WHERE rowid = (SELECT max(rowid) FROM trial)")
    store.close()
    text = write_report(tmp_path / "run", tmp_path / "r.md").read_text(encoding="utf-8")
    assert "Unfinished: 2 of 3 trials asked." in text
    page = write_report(tmp_path / "run", tmp_path / "r.html").read_text(encoding="utf-8")
    assert "unfinished: " in page
    assert run(["show", str(tmp_path / "run")]) == 0
    assert "unfinished: 2 of 3 trials asked; 2 of 3 scored" in capsys.readouterr().out


def test_unpaired_differences_show_the_n_of_each_side(tmp_path: Path) -> None:
    """Systems without a question in common have the questions of either beside the difference."""
    given = [{**row, "system": "a" if n < 4 else "b"} for n, row in enumerate(rows(10))]
    script = write_script(tmp_path / "s.jsonl", ("It is 3.", {**GOOD, "truth": 1}), (None, GOOD))
    run_it(given, rubric(SCORE), script, tmp_path / "run")
    text = write_report(tmp_path / "run", tmp_path / "r.md", by="system").read_text(encoding="utf-8")
    assert "questions of the first | questions of the second" in text
    row = next(line for line in text.splitlines() if line.startswith("| b less a"))
    assert [cell.strip() for cell in row.split("|")][5:7] == ["6", "4"]
    assert "fewer than 50 questions: the interval is rough" in text
