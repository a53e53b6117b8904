"""More than two responses to a prompt: every form they come in, ids that tell the pair, and a fair choice of pairs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError, UnknownNameError
from evenhand.item import Item
from evenhand.pairing import budget_of, pair_id, read_pairs, split_pair_id, within_budget
from evenhand.rubric.load import load_rubric
from evenhand.sources import BadRow
from rubric_texts import PAIR, TEN_LINES, rubric

SPEC = rubric(PAIR).item
TEXTS = {"gpt": "g", "llama": "l", "qwen": "q"}
THREE = {("gpt", "llama"), ("gpt", "qwen"), ("llama", "qwen")}


def _read(rows: Any, pairs: str = "all", **options: Any) -> list[Item | BadRow]:
    return list(read_pairs(rows, SPEC, pairs, **options))


def _items(rows: Any, pairs: str = "all", **options: Any) -> list[Item]:
    found = _read(rows, pairs, **options)
    assert [row for row in found if isinstance(row, BadRow)] == []
    return [row for row in found if isinstance(row, Item)]


def _told(items: list[Item]) -> set[tuple[str, str, str, str, str]]:
    """Prompt and both systems with their texts, the systems sorted."""
    told = set()
    for item in items:
        sides = sorted((item.extra[f"system_{slot}"], item.fields[f"response_{slot}"]) for slot in "ab")
        told.add((item.fields["prompt"], *sides[0], *sides[1]))
    return told


WANTED = {("p", a, TEXTS[a], b, TEXTS[b]) for a, b in THREE}


@pytest.mark.parametrize(
    ("rows", "mapping"),
    [
        ([{"prompt": "p", "responses": TEXTS}], {}),
        ([{"prompt": "p", "responses": json.dumps(TEXTS)}], {}),
        ([{"prompt": "p", "responses": [{"system": s, "response": t} for s, t in TEXTS.items()]}], {}),
        ([{"prompt": "p", "outs": [{"model": s, "output": t} for s, t in TEXTS.items()]}], {"responses": "outs"}),
        ([{"prompt": "p", **TEXTS}], {"responses": "gpt+llama+qwen"}),
        ([{"prompt": "p", **{f"response_{c}": TEXTS[s] for c, s in zip("abc", TEXTS, strict=True)},
           **{f"system_{c}": s for c, s in zip("abc", TEXTS, strict=True)}}], {}),
        ([{"prompt": "p", "response": t, "system": s} for s, t in TEXTS.items()], {}),
        ([{"id": "1", "prompt": "p", "answer": t, "model": s} for s, t in TEXTS.items()], {}),
        ([{"q": "p", "id": s, "prompt_id": 7, "said": t, "by": s} for s, t in TEXTS.items()],
         {"prompt": "q", "response": "said", "system": "by"}),
    ],
)  # fmt: skip
def test_every_form_gives_the_same_pairs(rows: list[dict[str, Any]], mapping: dict[str, str]) -> None:
    """A list, an object, a column each, a row each: three responses are three pairs, each text with its system."""
    items = _items(rows, mapping=mapping)
    assert len(items) == 3
    assert _told(items) == WANTED
    assert [item.row for item in items] == [0, 1, 2]


def test_responses_without_names_are_numbered_or_lettered() -> None:
    """Texts of a list are systems 1, 2, 3; columns response_a, response_b, response_1 are a, b, 1."""
    listed = _items([{"prompt": "p", "responses": ["x", "y", "z"]}])
    assert {(a, b) for _, a, _, b, _ in _told(listed)} == {("1", "2"), ("1", "3"), ("2", "3")}
    lettered = _items([{"prompt": "p", "response_a": "x", "response_b": "y", "response_1": "z"}])
    assert {(a, b) for _, a, _, b, _ in _told(lettered)} == {("a", "b"), ("1", "a"), ("1", "b")}


def test_names_that_a_rubric_takes_for_its_responses_may_have_more_letters() -> None:
    """hhh reads answer_a and output_1 too; so answer_c and output_3 are responses there."""
    found = list(
        read_pairs(
            [{"question": "p", "answer_a": "x", "answer_b": "y", "answer_c": "z", "note": "n"}],
            load_rubric("hhh").item,
            "all",
        )
    )
    assert len(_told([row for row in found if isinstance(row, Item)])) == 3
    assert [row.extra["note"] for row in found if isinstance(row, Item)] == ["n"] * 3


def test_the_same_prompts_from_every_file_have_the_same_ids(tmp_path: Path) -> None:
    """CSV and JSON lines give equal pairs, with the prompt's own id or without."""
    for own in ({"id": "x"}, {}):
        rows = [{**own, "prompt": "p", "response_a": "1", "response_b": "", "response_c": "3"}]
        (tmp_path / "r.csv").write_text(",".join(rows[0]) + "\n" + ",".join(rows[0].values()) + "\n", encoding="utf-8")
        (tmp_path / "r.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
        read = [_items(str(tmp_path / name)) for name in ("r.csv", "r.jsonl")]
        assert [(i.id, i.fields) for i in read[0]] == [(i.id, i.fields) for i in read[1]]


def test_ids_don_t_depend_on_the_rest_of_the_input() -> None:
    """Another order of systems, more systems, more prompts: a pair keeps its id and its slots."""
    few = _items([{"id": "p1", "prompt": "p", "responses": {"gpt": "g", "llama": "l"}}])
    many = _items(
        [
            {"id": "p0", "prompt": "o", "responses": TEXTS},
            {"id": "p1", "prompt": "p", "responses": dict(reversed(TEXTS.items()))},
        ]
    )
    assert few[0].id in {item.id for item in many}
    twin = next(item for item in many if item.id == few[0].id)
    assert (twin.fields, twin.extra) == (few[0].fields, few[0].extra)


@given(st.text(), st.text(), st.text())
def test_ids_of_pairs_can_be_taken_apart(prompt: str, a: str, b: str) -> None:
    """Prompt and systems come back from the id, whatever characters they hold."""
    assert split_pair_id(pair_id(prompt, a, b)) == (prompt, a, b)


def test_an_id_of_another_form_is_no_pair() -> None:
    """Ids with fewer than two separators tell no systems."""
    assert split_pair_id("neighbour-wifi") is None
    assert split_pair_id("a~b") is None


def test_slots_are_shared_out_evenly() -> None:
    """Over many prompts each of two systems is A about half the time."""
    items = _items([{"id": str(n), "prompt": "p", "responses": {"x": "1", "y": "2"}} for n in range(400)])
    assert 160 < sum(item.extra["system_a"] == "x" for item in items) < 240


def test_a_null_response_is_a_response() -> None:
    """A system that crashed is compared like one that said nothing."""
    (item,) = _items([{"prompt": "p", "responses": {"x": None, "y": ""}}])
    assert {item.fields["response_a"], item.fields["response_b"]} == {None, ""}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"prompt": "p", "responses": ["x"]}], "1 response to this prompt: nothing to compare"),
        ([{"prompt": "p", "responses": []}], "no response to this prompt"),
        ([{"prompt": "p", "responses": "x"}], "responses is not JSON"),
        ([{"prompt": "p", "responses": 5}], "responses is no list of responses"),
        ([{"prompt": "p", "responses": [["x"], "y"]}], "responses[0] is a list where text is due"),
        ([{"prompt": "p", "responses": [{"by": "x"}, "y"]}], "responses[0] has no response"),
        ([{"prompt": "p", "responses": [{"system": "s", "text": t} for t in "xy"]}], "two responses of system 's'"),
        ([{"prompt": "p"}], "give them as a list `responses`"),
        ([{"responses": TEXTS}], "no prompt; columns: responses"),
        ([{"id": "1", "prompt": p, "response": "x", "system": p} for p in "pq"], "same id '1', but another prompt"),
        ([{"prompt": p, "response": "x", "system": "s"} for p in "pp"], "two responses of system 's'"),
        ([{"id": n, "prompt": "p", "response": "x"} for n in (1, 2)], "share an id, or all other fields"),
        ([{"id": 1, "prompt": "p", "responses": TEXTS}] * 2, "the id '1' was given before, in row 1"),
        ([5], "where a mapping of columns is due"),
    ],
)  # fmt: skip
def test_what_can_t_be_paired_is_a_bad_row(rows: list[Any], said: str) -> None:
    """Rows and prompts that can't be used are told one by one, with their place and the remedy."""
    bad = [row for row in _read(rows) if isinstance(row, BadRow)]
    assert any(said in problem.render(None) for row in bad for problem in row.problems)
    assert all(problem.path.startswith("row ") for row in bad for problem in row.problems)


def test_bad_rows_have_places_of_their_own() -> None:
    """Pairs and bad rows are numbered together, so that a store can keep them all."""
    found = _read([{"prompt": "p", "responses": TEXTS}, {"prompt": "q"}, {"prompt": "r", "responses": TEXTS}])
    assert [row.row for row in found] == list(range(7))


@pytest.mark.parametrize("pairs", ["", "some", "budget", "budget:", "budget:0", "budget:-1", "budget:x", "all:3"])
def test_pairs_are_written_in_two_ways_only(pairs: str) -> None:
    """All, or budget with a whole number above 0."""
    with pytest.raises(InputError, match="all or budget:N"):
        budget_of(pairs)


def test_what_the_caller_got_wrong() -> None:
    """Pairs of a rubric that scores, an unknown field, no rows at all and a limit of 0 are input errors."""
    with pytest.raises(InputError, match="mode compare"):
        read_pairs([], rubric(TEN_LINES).item, "all")
    with pytest.raises(UnknownNameError, match="response_a"):
        _read([], mapping={"response_a": "x"})
    with pytest.raises(InputError, match="no rows"):
        _read([])
    with pytest.raises(InputError, match="limit"):
        _read([], limit=0)


def test_limit_and_sample_count_prompts() -> None:
    """Prompts are taken whole: two of them are six pairs."""
    rows = [{"id": str(n), "prompt": "p", "responses": TEXTS} for n in range(20)]
    assert [item.extra["prompt_id"] for item in _items(rows, limit=2)] == ["0"] * 3 + ["1"] * 3
    assert len({item.extra["prompt_id"] for item in _items(rows, sample=4)}) == 4
    assert len(_items(rows, sample=4)) == 12


def test_a_budget_counts_pairs() -> None:
    """As many pairs as given, over all prompts; all of them where the budget is greater."""
    rows = [{"id": str(n), "prompt": "p", "responses": TEXTS} for n in range(4)]
    assert len(_items(rows, "budget:7")) == 7
    assert len(_items(rows, "budget:99")) == 12
    assert [i.id for i in _items(rows, "budget:7", seed=1)] != [i.id for i in _items(rows, "budget:7", seed=2)]
    assert [i.id for i in _items(rows, "budget:7", seed=1)] == [i.id for i in _items(rows, "budget:7", seed=1)]


prompts = st.lists(st.integers(2, 8).map(lambda n: [f"s{k}" for k in range(n)]), min_size=1, max_size=8)


@settings(deadline=None, max_examples=150)
@given(prompts, st.integers(1, 120), st.integers(0, 3))
def test_a_budget_is_shared_out_fairly(systems: list[list[str]], budget: int, seed: int) -> None:
    """No pair twice; responses of a prompt are compared equally often, give or take two, and linked at once."""
    chosen = within_budget(systems, budget, seed)
    whole = sum(len(names) * (len(names) - 1) // 2 for names in systems)
    assert sum(map(len, chosen)) == min(budget, whole)
    for names, pairs in zip(systems, chosen, strict=True):
        assert len({frozenset(pair) for pair in pairs}) == len(pairs)
        degrees = Counter(dict.fromkeys(names, 0))
        degrees.update(itertools.chain.from_iterable(pairs))
        assert max(degrees.values()) - min(degrees.values()) <= 2
        assert len(_parts(names, pairs)) == max(1, len(names) - len(pairs))
    unfinished = [len(p) for n, p in zip(systems, chosen, strict=True) if len(p) < len(n) * (len(n) - 1) // 2]
    assert not unfinished or max(map(len, chosen)) >= max(unfinished) >= min(unfinished) >= max(unfinished) - 1


@settings(deadline=None, max_examples=50)
@given(prompts, st.integers(1, 60), st.integers(1, 30), st.integers(0, 3))
def test_a_greater_budget_keeps_the_pairs_of_a_smaller_one(
    systems: list[list[str]], budget: int, more: int, seed: int
) -> None:
    """So that a run with more budget resumes one with less."""
    few, many = within_budget(systems, budget, seed), within_budget(systems, budget + more, seed)
    assert all(great[: len(small)] == small for small, great in zip(few, many, strict=True))


def test_systems_are_equally_often_compared_over_all_prompts() -> None:
    """With one pair a prompt, five systems appear equally often, and every two of them meet."""
    chosen = within_budget([list("abcde")] * 100, 100, seed=0)
    used = Counter(name for pairs in chosen for pair in pairs for name in pair)
    met = Counter(frozenset(pair) for pairs in chosen for pair in pairs)
    assert max(used.values()) - min(used.values()) <= 1
    assert len(met) == 10
    assert max(met.values()) - min(met.values()) <= 2


def _parts(names: list[str], pairs: list[tuple[str, str]]) -> set[frozenset[str]]:
    """The sets of responses that comparisons link, one by one or in a chain."""
    part = {name: frozenset([name]) for name in names}
    for a, b in pairs:
        joined = part[a] | part[b]
        part.update(dict.fromkeys(joined, joined))
    return set(part.values())
