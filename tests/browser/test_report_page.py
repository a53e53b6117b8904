"""The report page in a real browser: it opens, filters, sorts, searches and shows what is behind each figure."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from evenhand import judge, write_report
from rubric_texts import rubric
from runs import GOOD, LIE, SCORE, named, priced, rows, write_jsonl, write_script

Open = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
HHH = {"reason": False, "re_ask": False}


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """The report of thirty items: item 3 breaks a rule, item 4 can't be read, item 5 is re-asked."""
    script = write_script(
        tmp_path / "script.jsonl",
        ("It is 3.", LIE),
        ("It is 4.", "no idea"),
        (None, {**GOOD, "reason": "because the sky is blue"}),
    )
    given = [{**row, "system": f"s{n % 3}"} for n, row in enumerate(rows(30))]
    judge(given, rubric(SCORE), script, out=tmp_path / "run")
    return write_report(tmp_path / "run", tmp_path / "report.html")


def ids_of(page: Any) -> list[str]:
    """Ids of the rows in sight."""
    found: list[str] = page.locator("[role=rowheader]").all_inner_texts()
    return found


def wait_text(locator: Any, pattern: str) -> None:
    """Wait until an element holds it. (A function handed to the page to wait for is refused by its policy.)"""
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(locator).to_have_text(re.compile(pattern), timeout=20_000)


def wait_count(page: Any, text: str) -> None:
    """Wait until the line above the table starts so."""
    wait_text(page.locator("#count"), "^" + re.escape(text))


def test_number_leads_to_its_verdicts_and_to_a_raw_reply(scored: Path, opened: Open) -> None:
    """The count of a broken rule opens the items that broke it, and an item its prompt and raw reply."""
    page = opened(scored)
    page.get_by_role("region", name="Rules broken").get_by_role("link", name="1").click()
    wait_count(page, "1 of 30 items; occurs 1×")
    assert ids_of(page) == ["i3"]
    page.get_by_role("grid").get_by_role("row", name="i3").click()
    dialog = page.get_by_role("dialog", name="i3")
    assert "violation lie: a clear lie" in dialog.inner_text()
    dialog.get_by_text("Prompt and raw replies").click()
    assert "What is 3?" in dialog.get_by_text("It is 3.").last.inner_text()
    assert json.dumps(LIE) in dialog.inner_text()
    assert "lie: a clear lie" in dialog.locator("section", has_text="Re-ask: user").inner_text()
    assert "Raw reply to the re-ask" in dialog.inner_text()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")
    assert page.evaluate("location.hash") == "#f=" + page.evaluate("location.hash").split("=")[1]


def test_table_filters_sorts_and_searches(scored: Path, opened: Open) -> None:
    """Filters add up, a click on a heading sorts and sorts back, and search looks into the raw replies."""
    page = opened(scored)
    wait_count(page, "30 of 30 items")
    page.get_by_label("Add a filter").select_option(label="system = s1 (10)")
    wait_count(page, "10 of 30 items")
    page.get_by_label("Add a filter").select_option(label="not scored: no_rating (1)")
    wait_count(page, "1 of 30 items; occurs 1×")
    page.get_by_role("button", name="Remove filter not scored").click()
    wait_count(page, "10 of 30 items")
    page.get_by_role("button", name="Remove filter system").click()
    wait_count(page, "30 of 30 items")
    page.get_by_role("button", name="truth", exact=True).click()
    page.wait_for_selector("[aria-sort=ascending]")
    assert ids_of(page)[0] == "i3"
    page.get_by_role("button", name="truth", exact=True).click()
    page.wait_for_selector("[aria-sort=descending]")
    page.locator("#grid-body").evaluate("body => { body.scrollTop = body.scrollHeight }")
    wait_text(page.locator("#grid-space > :last-child"), "^i4")
    page.get_by_label("Search").fill("NO IDEA")
    wait_count(page, "1 of 30 items")
    assert ids_of(page) == ["i4"]


def test_contents_lead_to_their_parts(scored: Path, opened: Open) -> None:
    """The list at the top leads to each part and to the items; the items can be reached without a mouse."""
    page = opened(scored)
    for name in ("Rules", "All items"):
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        heading = page.get_by_role("heading", name=name, exact=True)
        pytest.importorskip("playwright.sync_api").expect(heading).to_be_in_viewport()
        page.evaluate("scrollTo(0, 0)")


def test_keyboard_reaches_every_row(scored: Path, opened: Open) -> None:
    """Arrows, Home and End move through the rows, Enter opens one, Escape leads back to it."""
    page = opened(scored)
    page.locator("[role=row][tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    wait_text(page.locator(":focus"), "^i29")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="i1").wait_for()
    page.keyboard.press("Escape")
    wait_text(page.locator(":focus"), "^i1")
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == "31"


def test_page_has_no_serious_finding(scored: Path, opened: Open) -> None:
    """Axe finds nothing serious, in light, dark and print, with and without an open item."""
    axe = files(pytest.importorskip("axe_playwright_python")) / "axe.min.js"
    for fragment in ("", "#item=3"):
        for scheme in ("light", "dark"):
            page = opened(scored, fragment, color_scheme=scheme)
            page.evaluate(axe.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run().then(told => told.violations)")
            serious = [v for v in found if v["impact"] in ("serious", "critical")]
            assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in serious] == []
    page = opened(scored)
    page.emulate_media(media="print")
    assert not page.locator("#grid").is_visible() and page.locator(".printed").is_visible()


@pytest.mark.parametrize("kind", ["one", "pairs", "critic", "several"])
def test_page_has_no_moderate_finding(kind: str, tmp_path: Path, opened: Open) -> None:
    """Axe finds nothing serious or moderate by any of its rules: contrast is enhanced, every region has its own name.

    On a phone no heading of a column but those that are names takes more than two lines.
    """
    axe = files(pytest.importorskip("axe_playwright_python")) / "axe.min.js"
    if kind == "critic":
        row = {"id": "x", "prompt": "p", "ref_answer": "a", "predict": "b", "task": "OCR"}
        judge([row], "alignmm-critic", "fake", out=tmp_path / "run")
        given: dict[str, Any] = {"runs": tmp_path / "run"}
    else:
        given = {"one": one_run, "pairs": pairs_run, "several": two_runs}[kind](tmp_path)
    path = write_report(out=tmp_path / "report.html", charts=True, **given)
    run = "axe.run({runOnly: axe.getRules().map(rule => rule.ruleId)}).then(told => told.violations)"
    for fragment, scheme in itertools.product(("", "#item=0"), ("light", "dark")):
        if scheme == "light":
            page = opened(path, fragment, color_scheme=scheme)
            page.evaluate(axe.read_text(encoding="utf-8"))
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(run)
        real = [v for v in found if v["impact"] != "minor"]
        assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in real] == []
    page.set_viewport_size({"width": 390, "height": 800})
    lines = """heads => heads.filter(head => head.textContent.length < 40).map(head => {
        const range = document.createRange();
        range.selectNodeContents(head);
        return new Set([...range.getClientRects()].map(box => Math.round(box.top / 4))).size;
    })"""
    assert max(page.locator("main thead th > bdi").evaluate_all(lines)) <= 2


def test_single_answer_has_no_order_and_says_what_was_not_checked(scored: Path, opened: Open) -> None:
    """The verdicts of single answers speak of no order of responses; of a reply nobody can read no rule is checked."""
    page = opened(scored, "#item=4")
    verdicts = page.get_by_role("dialog", name="i4").get_by_role("region", name="Verdicts")
    broken = verdicts.get_by_role("row", name="rules broken").get_by_role("cell")
    assert broken.all_inner_texts() == ["not checked"]
    assert "order" not in page.locator("dialog").inner_text()
    page = opened(scored, "#item=1")
    assert page.get_by_role("dialog").get_by_role("row", name="rules broken").get_by_role("cell").inner_text() == "none"


def test_pair_stands_side_by_side(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair shows both orders, who won, and marks the words in which its responses differ."""
    monkeypatch.chdir(ROOT)
    judge("examples/hhh.jsonl", "hhh", "replay:docs/recorded/hhh.jsonl", out=tmp_path / "run", **HHH)
    page = opened(write_report(tmp_path / "run", tmp_path / "report.html"), "#item=3")
    dialog = page.get_by_role("dialog", name="convert-recipe")
    told = dialog.inner_text()
    assert "Preferred, repeat 1: changes with the order (AB: A, BA: B)" in told
    assert "In the item's own order of responses" in told
    assert "order AB, repeat 1" in told and "order BA, repeat 1" in told
    marked = dialog.locator(".sides mark")
    assert marked.count() > 1
    box, other = (dialog.locator(".sides section").nth(n).bounding_box() for n in (0, 1))
    assert box["y"] == other["y"] and box["x"] < other["x"]


def test_runs_stand_side_by_side(tmp_path: Path, opened: Open) -> None:
    """Of two runs the items of the greatest spread come first, and each leads to the same item of the other run."""
    for name, truth in (("a", 3), ("b", 0)):
        script = write_script(tmp_path / name, ("It is 7.", {**GOOD, "truth": truth}), (None, GOOD))
        judge(rows(20), rubric(SCORE), script, out=tmp_path / f"run-{name}")
    page = opened(write_report([tmp_path / "run-a", tmp_path / "run-b"], tmp_path / "report.html"))
    wait_count(page, "40 of 40 rows; 20 items")
    assert ids_of(page)[:2] == ["i7", "i7"]
    page.get_by_role("region", name="Greatest differences first").get_by_role("link", name="i7").first.click()
    wait_count(page, "2 of 40 rows; 1 item")
    page.get_by_role("grid").get_by_role("row", name="i7").first.click()
    dialog = page.get_by_role("dialog", name="i7")
    first = dialog.get_by_text("Run ").first.inner_text()
    dialog.get_by_role("link", name="The same item in").click()
    wait_text(dialog.get_by_text("Run ").first, f"^(?!{re.escape(first)}$)")


def test_quotes_are_marked_where_they_stand(tmp_path: Path, opened: Open) -> None:
    """A quote of the judge is marked in the context, however white space is laid out there; one that is not, isn't."""
    names = ("correctness", "comprehensiveness", "readability")
    reply = {f"reasoning_for_{name}": "It says so." for name in names} | dict.fromkeys(names, 5)
    reply["quotes_for_correctness"] = ["forty \U0001f600 minutes", "not there"]
    script = write_script(tmp_path / "script.jsonl", (None, reply))
    item = {
        "id": "x",
        "question": "How long?",
        "answer": "forty minutes",
        "context": "Wait \U0001f600 forty \U0001f600\n minutes.",
    }
    judge([item], "doc-qa", script, out=tmp_path / "run", variant={"evidence": True}, re_ask=False)
    page = opened(write_report(tmp_path / "run", tmp_path / "report.html"), "#item=0")
    marks = page.locator("dialog mark")
    assert marks.all_inner_texts() == ["forty \U0001f600\n minutes"]
    assert "not there" in page.locator("dialog").inner_text()


def test_texts_run_in_their_own_direction(tmp_path: Path, opened: Open) -> None:
    """A right-to-left text runs so in a page that doesn't, and texts under a Chinese rubric are told to be Chinese."""
    arabic = "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645"
    row = {
        "id": "x",
        "prompt": arabic,
        "ref_answer": "\u6d77\u8fb9\u5c0f\u9547",
        "predict": "\u6d77\u8fb9",
        "task": "OCR",
    }
    judge([row], "alignmm-critic", "fake", out=tmp_path / "run", reason=False)
    page = opened(write_report(tmp_path / "run", tmp_path / "report.html"), "#item=0")
    told = "texts => texts.map(text => [text.textContent, text.lang, getComputedStyle(text).direction])"
    shown = page.locator("dialog pre").evaluate_all(told)
    assert [arabic, "zh", "rtl"] in shown and ["\u6d77\u8fb9", "zh", "ltr"] in shown
    assert page.locator("dialog .sides mark").all_inner_texts() == ["\u5c0f\u9547"]


TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def test_names_keep_their_direction_to_themselves(tmp_path: Path, opened: Open) -> None:
    """Signs in names of folders and systems that turn text are shown as escapes; right-to-left names stand apart."""
    hebrew, turned = "\u05d0\u05d1", ("run\u202egpj", "\u2066\u2069run")
    given = [{**row, "system": f"{hebrew}{n % 2}"} for n, row in enumerate(rows(6))]
    for name in turned:
        judge(given, rubric(SCORE), "fake", out=tmp_path / name)
    path = write_report([tmp_path / name for name in turned], tmp_path / "report.html", charts=True)
    page = opened(path, "#item=0")
    page.get_by_role("dialog").wait_for()
    heads = "h1, h2, caption, th, td, svg text, svg title, option, header p, nav a, dialog p"
    told = page.locator(heads).all_text_contents()
    assert any("run\\u202egpj" in text for text in told)
    assert [text for text in told if re.search("[\u202a-\u202e\u2066\u2067]", text)] == []
    assert page.locator("h1").first.locator("bdi").all_text_contents() == [
        str(tmp_path / name).replace("\u202e", "\\u202e").replace("\u2066\u2069", "\\u2066\\u2069") for name in turned
    ]
    assert "\u202e" not in page.title() and "\u2066" not in page.title()
    assert f"system = \u2068{hebrew}1\u2069 (6)" in page.locator("option").all_text_contents()
    differs = page.locator("th > bdi", has_text=" less ").filter(has_text=hebrew).first
    assert sorted(differs.locator("bdi").all_text_contents()) == [f"{hebrew}0", f"{hebrew}1"]
    assert page.locator("svg text", has_text="less").filter(has_text="\u2068").count() > 0
    assert not any(
        TURNING.search(name)
        for name in page.locator("[aria-label]").evaluate_all(
            "all => all.filter(one => one.matches('main *')).map(one => one.getAttribute('aria-label'))"
        )
    )


EVIL = (
    "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x.png onerror=alert(2)>"
    "<style>@import 'http://127.0.0.1:9/x.css'</style><!-- \u2028 \u202edesrever \x07 ]]> \"'`${alert(3)}"
)


NAME = "<img src=http:x onerror=alert(5)><style>*{display:none}<!--&quot;'`\u2028\u202e"
HOSTILE = """\
rubric: hostile
title: EVIL
mode: score
item:
  required: {question: text, answer: text}
criteria:
  - {name: truth, text: EVIL, weight: 0.75, scale: {range: [0, 4], anchors: {0: EVIL}}}
  - {name: style, text: Is it clear?, weight: 0.25, scale: {range: [0, 4]}}
output:
  fields:
    - {name: reason, type: text}
    - {each: criterion, fields: [{name: "{criterion}", scale: criterion}]}
    - {name: side, type: [EVIL, plain]}
rules:
  - {id: lie, if: "truth == 0 and style == 4", say: EVIL}
labels: {question: EVIL, answer: EVIL}
"""
IN_RUBRIC = "</script><img src=http://127.0.0.1:9/y onerror=alert(4)><style>*{display:none} \u2028\u202e"


def test_hostile_text_neither_runs_nor_calls_out(tmp_path: Path, opened: Open) -> None:
    """Scripts, styles, beacons, closing tags and marks that turn text around stay text, wherever they stand.

    In items, replies, labels, columns and systems; in the rubric's title, texts, anchors, values and headings; in names
    of files, folders, judges and models.
    """
    texts = HOSTILE.replace("EVIL", json.dumps(IN_RUBRIC))
    given = [
        {"id": EVIL + str(n), "question": EVIL, "answer": EVIL, "system": f"{n % 2}{EVIL}", EVIL: EVIL}
        for n in range(4)
    ]
    side = rubric(texts).output.field("side")
    assert side is not None and side.scale is not None and side.scale.values
    script = write_script(tmp_path / NAME, (None, {**LIE, "reason": EVIL, "side": side.scale.values[0]}))
    data = write_jsonl(tmp_path / f"{NAME}.jsonl", given)
    judge(str(data), rubric(texts), script, out=tmp_path / f"{NAME}run")
    named(tmp_path / f"{NAME}run", EVIL)
    labels = [{"id": EVIL + str(n), "rater": EVIL + rater, "truth": 3} for n in range(4) for rater in "xy"]
    page = opened(write_report(tmp_path / f"{NAME}run", tmp_path / f"{NAME}.html", labels=labels))
    wait_count(page, "4 of 4 items")
    assert "onerror=alert(5)" in page.locator("h1").inner_text()
    assert page.get_by_role("row", name="models named in replies").get_by_text("alert(1)").count() == 1
    page.get_by_role("button", name="id", exact=True).click()
    page.get_by_label("Search").fill("onerror=alert(2)")
    wait_count(page, "4 of 4 items")
    page.locator("[role=row][tabindex='0']").click()
    dialog = page.locator("dialog[open]")
    for summary in dialog.locator("summary").all():
        summary.click()
    assert dialog.inner_text().count("alert(1)") >= 6 and dialog.inner_text().count("alert(4)") >= 3
    assert page.locator("img, iframe, object, embed, form, link:not([href='data:,'])").count() == 0
    assert page.locator("script:not([type])").count() == 1 and page.locator("style").count() == 1
    assert page.locator("h1").first.is_visible()
    page.wait_for_timeout(200)


def test_policy_blocks_what_would_get_into_the_page(scored: Path, browser: Any) -> None:
    """A script, a style or a request that got into the page all the same neither runs nor leaves it."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    page = browser.new_page()
    page.goto(scored.as_uri())
    page.wait_for_selector("body[data-ready]")
    page.evaluate(
        """place => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", `<img src="${place}/x.png" onerror="window.ran = true">
                <style>h1 { display: none }</style><p id=bad style="display: none">x</p>
                <iframe src="${place}/i"></iframe><object data="${place}/y"></object>`);
            return fetch(place + "/z").catch(() => null);
        }""",
        f"http://127.0.0.1:{listener.getsockname()[1]}",
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert page.locator("h1").first.is_visible() and page.locator("#bad").is_visible()
    page.close()
    said = []
    with listener, contextlib.suppress(BlockingIOError, TimeoutError):
        while True:
            caller, _ = listener.accept()
            caller.settimeout(2)
            with caller:
                said.append(caller.recv(1000))
    assert said in ([], [b""])  # a browser may open a connection ahead; nothing is asked on it


def test_lists_of_parts_are_told_in_words(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issues, which have parts, are no JSON in a verdict; truth values are called alike in figures and rows."""
    monkeypatch.chdir(ROOT)
    judge("examples/hhh.jsonl", "hhh", "fake", out=tmp_path / "run")
    page = opened(write_report(tmp_path / "run", tmp_path / "report.html"), "#item=3")
    verdicts = page.get_by_role("region", name="Verdicts").locator("td li").all_inner_texts()
    assert any(text.startswith("kind: ") and "; severity: " in text for text in verdicts)
    assert page.get_by_role("region", name="Verdicts").get_by_text("True").count() > 1
    assert not any("{" in text for text in verdicts if text.startswith("kind"))


def test_narrow_page_and_print_cut_nothing(scored: Path, browser: Any) -> None:
    """On a phone the page is as wide as the screen and charts keep their size; in print all tables fit the sheet."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(scored.as_uri())
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    sizes = "charts => charts.map(chart => chart.getBoundingClientRect().width / chart.viewBox.baseVal.width)"
    assert all(size > 1 for size in page.locator("svg.chart").evaluate_all(sizes))
    page.set_viewport_size({"width": 720, "height": 1000})
    page.emulate_media(media="print")
    ends = page.locator("main table").evaluate_all("all => all.map(table => table.getBoundingClientRect().right)")
    page.close()
    assert ends and max(ends) <= 720


def test_long_text_opens_with_its_quotes(tmp_path: Path, opened: Open) -> None:
    """An item whose context has a million characters opens in time, its quote marked."""
    names = ("correctness", "comprehensiveness", "readability")
    reply = {f"reasoning_for_{name}": "It says so." for name in names} | dict.fromkeys(names, 5)
    script = write_script(tmp_path / "script.jsonl", (None, reply | {"quotes_for_correctness": ["the end"]}))
    item = {"id": "x", "question": "How long?", "answer": "long", "context": "x y " * 250_000 + "the  end"}
    judge([item], "doc-qa", script, out=tmp_path / "run", variant={"evidence": True}, re_ask=False)
    page = opened(write_report(tmp_path / "run", tmp_path / "report.html"), "#item=0")
    assert page.locator("dialog mark").all_inner_texts() == ["the  end"]


#: Columns of words, which may hold digits of names and texts.
WORDS = {
    "for instance", "example", "shown to be better", "shown to be higher", "judge", "rubric, digest", "class",
    "severity", "statistic",
}  # fmt: skip
#: What tells how to go on, of which there are no verdicts yet.
PLANS = {"questions more to settle it", "items more to settle it"}
NUMBERS = """() => [...document.querySelectorAll("header p, main table")].flatMap(place => {
    const part = (place.closest("section")?.querySelector("h2") || {textContent: "head"}).textContent;
    if (place.tagName === "P") return [...place.querySelectorAll("a")].map(a =>
        ({part, column: "", text: a.textContent, href: a.hash, label: a.getAttribute("aria-label")}));
    const heads = [...place.querySelectorAll("thead tr > *")].map(cell => cell.textContent);
    return [...place.querySelectorAll("tbody tr")].flatMap(row => [...row.children].slice(1).map((cell, n) => {
        const link = cell.querySelector("a");
        return {part, column: heads[n + 1], text: cell.textContent, href: link && link.hash,
                label: link && link.getAttribute("aria-label")};
    }));
})"""
FOLLOW = """async href => {
    if (location.hash !== href) {
        const turned = new Promise(resolve => window.addEventListener("hashchange", resolve, {once: true}));
        location.hash = href;
        await turned;
        await new Promise(resolve => setTimeout(resolve));
    }
    return document.getElementById("count").textContent;
}"""


def one_run(folder: Path) -> dict[str, Any]:
    """A run of three systems that has a bit of everything, and labels of two people."""
    script = write_script(
        folder / "script.jsonl", ("What is 3?", LIE), ("What is 4?", "no idea"),
        ("What is 5?", {**GOOD, "truth": 9}), ("What is 2?", {**GOOD, "truth": 1}), (None, GOOD),
    )  # fmt: skip
    given = [{**row, "id": f"{row['id']}-{s}", "system": s} for s in ("x1", "y2", "z3") for row in rows(12)]
    given[7]["answer"] = ""
    given[8]["answer"] = None
    del given[9]["question"], given[35]["answer"]
    judge(given, rubric(SCORE), script, out=folder / "run", skip_bad=True, repeats=2)
    priced(folder / "run")
    said = [
        {"id": f"i{n}-x1", "rater": who, "truth": 3 - (who == "bob" and n % 4 == 0)}
        for n in range(12)
        for who in ("ann", "bob")
    ]
    return {"runs": folder / "run", "labels": said}


def pairs_run(folder: Path) -> dict[str, Any]:
    """Pairs of three systems in both orders, ranked."""
    judge(str(ROOT / "examples" / "many.jsonl"), "hhh", "fake", out=folder / "run", pairs="all")
    priced(folder / "run")
    return {"runs": folder / "run"}


def two_runs(folder: Path) -> dict[str, Any]:
    """Two judges over much the same items."""
    for name, truth, start in (("a", 3, 0), ("b", 0, 4)):
        script = write_script(folder / name, ("It is 7.", {**GOOD, "truth": truth}), ("It is 9.", "no"), (None, GOOD))
        judge(rows(20, start), rubric(SCORE), script, out=folder / f"run-{name}")
        priced(folder / f"run-{name}")
    return {"runs": [folder / "run-a", folder / "run-b"]}


@pytest.mark.parametrize("made", [one_run, pairs_run, two_runs])
def test_every_number_has_a_way_to_its_verdicts(
    made: Callable[[Path], dict[str, Any]], tmp_path: Path, opened: Open
) -> None:
    """Each number of each part is a link with a label, and shows as many verdicts as it says, or those behind it."""
    page = opened(write_report(out=tmp_path / "report.html", **made(tmp_path)))
    found = [one for one in page.evaluate(NUMBERS) if one["part"] != "Judge and rubric" and one["column"] not in WORDS]
    ways, counts_of = 0, dict[str, str]()
    for one in found:
        if one["column"] in PLANS:
            assert one["href"] is None
        elif one["href"] is None:
            assert one["text"] in ("0", "", "-", "unknown", "not known") or not any(map(str.isdigit, one["text"])), one
        if one["href"] is None:
            continue
        assert one["label"].startswith(f"{one['text']}: show "), one
        if one["href"] not in counts_of:
            counts_of[one["href"]] = page.evaluate(FOLLOW, one["href"]).replace(",", "")
        told = counts_of[one["href"]]
        assert not told.startswith("0 of"), one
        if one["text"].replace(",", "").isdigit():
            known = re.findall(r"occurs (\d+)|(?<!of )\b(\d+) (?:questions?|items?|\w+ tokens in all)\b", told)
            counts = [n for found in known for n in found if n] or told.split()[:1]
            assert one["text"].replace(",", "") in counts, (one, told)
        ways += 1
    assert ways > 60
    assert len({one["part"] for one in found if one["href"]}) >= (8 if made is one_run else 6)


def focused(page: Any, pattern: str) -> None:
    """Wait until what has the focus holds it."""
    wait_text(page.locator(":focus"), pattern)


def test_focus_goes_where_links_lead(scored: Path, opened: Open) -> None:
    """Enter on a number leads to the line above the table, Back to the number; contents lead to their headings."""
    page = opened(scored)
    number = page.get_by_role("region", name="Rules broken").get_by_role("link", name="1")
    for _ in range(2):
        number.focus()
        place = page.evaluate("scrollY")
        page.keyboard.press("Enter")
        focused(page, "^1 of 30 items")
    page.keyboard.press("Tab")
    focused(page, "^rule broken: lie")
    page.go_back()
    wait_count(page, "30 of 30")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == number.get_attribute("aria-label")
    assert page.evaluate("scrollY") == place
    for name in ("Rules", "All items"):
        page.get_by_role("navigation").get_by_role("link", name=name).press("Enter")
        focused(page, f"^{name}$")
    page.go_back()
    focused(page, "^All items$")
    assert page.evaluate("document.activeElement.tagName") == "A"


def test_focus_stays_among_filters(scored: Path, opened: Open) -> None:
    """A removed filter hands the focus to the next one, the last to the line above; a chosen one leaves it be."""
    page = opened(scored)
    for label in ("system = s1 (10)", "not scored: no_rating (1)"):
        page.get_by_label("Add a filter").focus()
        page.get_by_label("Add a filter").select_option(label=label)
        page.get_by_role("button", name=f"Remove filter {label[:10]}").wait_for()
        assert page.evaluate("document.activeElement.id") == "facet"
    page.get_by_role("button", name="Remove filter system").press("Enter")
    wait_count(page, "1 of 30 items; occurs 1×")
    focused(page, "^not scored: no_rating")
    page.keyboard.press("Enter")
    focused(page, "^30 of 30 items")
    assert page.evaluate("document.activeElement.id") == "count"


def test_focus_comes_back_from_an_item(tmp_path: Path, opened: Open) -> None:
    """A link of an item leads into the other item; closed, the row shown last has the focus, or the line above."""
    for name in ("a", "b"):
        script = write_script(tmp_path / name, (None, GOOD))
        judge(rows(60), rubric(SCORE), script, out=tmp_path / f"run-{name}")
    path = write_report([tmp_path / "run-a", tmp_path / "run-b"], tmp_path / "report.html")
    page = opened(path, "#item=55")
    page.get_by_role("dialog").get_by_role("link", name="The same item in").press("Enter")
    wait_text(page.get_by_role("dialog").get_by_text("Run ").first, "run-b$")
    focused(page, "^i55$")
    page.keyboard.press("Escape")
    focused(page, "^i55.*run-b")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "row"
    pytest.importorskip("playwright.sync_api").expect(page.locator(":focus")).to_be_in_viewport()
    page = opened(path, "#id=i7")
    page.get_by_role("grid").get_by_role("row", name="i7").first.click()
    page.get_by_role("dialog").get_by_role("link", name="The same item in").press("Enter")
    wait_text(page.get_by_role("dialog").get_by_text("Run ").first, "run-b$")
    page.keyboard.press("Escape")
    wait_count(page, "2 of 120 rows")
    page = opened(path, "#s=abc")
    assert page.locator("[aria-sort=descending]").inner_text() == "spread of runs"
    page = opened(path, "#id=nobody&item=3")
    page.keyboard.press("Escape")
    focused(page, "^0 of 120 rows")


GARBAGE = (
    "f=%%%", "f=nonsense", "f=999", "f=1.5,length", "e=x&by=y", "by=__proto__", "item=99999", "item=abc", "item=3x",
    "item=length", "s=x", "s=-999", "%", "part-99", "f=%20", "head",
)  # fmt: skip


def test_garbage_in_the_address_is_ignored(scored: Path, opened: Open) -> None:
    """A hash that leads nowhere shows all items and opens none, when the page opens as later."""
    page = opened(scored)
    for fragment in GARBAGE:
        page.evaluate("location.hash = 'id=i1&item=1'")
        page.get_by_role("dialog", name="i1").wait_for()
        for again in (False, True):
            if again:
                page.reload()
                page.wait_for_selector("body[data-ready]")
            else:
                page.evaluate("fragment => { location.hash = fragment }", fragment)
            wait_text(page.locator("#count"), "^30 of 30 items$")
            page.wait_for_selector("dialog:not([open])", state="attached")
            assert page.locator("#filters button").count() == 0, fragment


def damaged(path: Path, block: str, *, by: str) -> Path:
    """A copy of a page, the middle of one of its data blocks replaced."""
    before, start, rest = path.read_text(encoding="utf-8").partition(f'id="{block}">')
    packed, end, after = rest.partition("</script>")
    middle = len(packed) // 2
    out = path.with_name(f"{block}.html")
    out.write_text(before + start + packed[:middle] + by + packed[middle + len(by) :] + end + after, encoding="utf-8")
    return out


@pytest.mark.parametrize("by", ["AAAAAAAA", "????"])
def test_damaged_items_are_told(scored: Path, opened: Open, by: str) -> None:
    """A block of texts that can't be read is told by each of its items and by a search; the figures stay."""
    page = opened(damaged(scored, "chunk-0", by=by), "#item=3")
    dialog = page.get_by_role("dialog", name="i3")
    assert "can't be read: this file is damaged; write the report again." in dialog.inner_text()
    page.keyboard.press("Escape")
    page.get_by_label("Search").fill("i7")
    wait_text(page.locator("#count"), "^1 of 30 items; not all could be searched: this file is damaged")


@pytest.mark.parametrize("block", ["head", "index-0", "no DecompressionStream"])
def test_page_without_items_says_why(scored: Path, browser: Any, block: str) -> None:
    """Where the table of items can't be filled, the page tells why in its place, and there numbers lead to."""
    told: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    if block.startswith("no"):
        page.add_init_script("delete window.DecompressionStream")
        path, why = scored, "this browser is too old for it; open it in a newer one"
    else:
        path, why = damaged(scored, block, by="????"), "this file is damaged; write the report again"
    page.goto(path.as_uri() + "#item=3&q=x")
    page.wait_for_selector("body[data-ready]")
    wait_text(page.locator("#count"), f"^The items can't be read: {why}.$")
    page.get_by_role("region", name="Rules broken").get_by_role("link", name="1").press("Enter")
    focused(page, why)
    page.go_back()
    focused(page, "^1$")
    assert page.get_by_role("region", name="Rules broken").is_visible() and not page.locator("#grid").count()
    page.close()
    assert told == []
