"""The built-in rubrics are written in our own words: no longer run of words is shared with the source texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest

RUBRICS = ("hhh", "alignmm-critic", "alignmm-critic.en", "doc-qa", "doc-qa-rag")
SEEDS = ("002_980743d25ff6e1a3.txt", "003_3dce497fb2730701.txt", "004_0a69c26ef5e439aa.txt")
WORDS, CHARACTERS = 10, 16
#: Names, not sentences: the label set, the entry phrases and the table of type names.
EXEMPT = (
    r"values: \[about the same, slightly better, better, significantly better\]",
    r'^  "(Evaluate these|Which response|Compare response|Rate the|evaluate the|assess truth)[^"]*": ',
    r"^    [A-Z][A-Za-z ]+: [\u4e00-\u9fffOCR]+",
)
BREAK = "‖"  # stands for what was taken out: a run can't go across it
_CJK = re.compile(f"[\u3400-\u9fff{BREAK}]")
_WORD = re.compile(f"[a-z0-9]+(?:['’][a-z]+)?|{BREAK}")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("_", " ")


def _word_runs(text: str) -> dict[tuple[str, ...], None]:
    found = _WORD.findall(_folded(text))
    runs = (tuple(found[i : i + WORDS]) for i in range(len(found) - WORDS + 1))
    return {run: None for run in runs if BREAK not in run}


def _character_runs(text: str) -> dict[str, None]:
    found = "".join(_CJK.findall(_folded(text)))
    runs = (found[i : i + CHARACTERS] for i in range(len(found) - CHARACTERS + 1))
    return {run: None for run in runs if BREAK not in run}


def shared_runs(text: str, source: str) -> list[str]:
    """Runs of 10 words or 16 Chinese characters that stand in both texts, whatever case, spacing and punctuation."""
    words = [" ".join(run) for run in _word_runs(text).keys() & _word_runs(source).keys()]
    return sorted(chain(words, _character_runs(text).keys() & _character_runs(source).keys()))


def _own_text(name: str) -> str:
    """A built-in rubric's text without requirement marks and without what is exempt."""
    text = (files("evenhand.rubrics") / f"{name}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"#!.*", "", text)
    for pattern in EXEMPT:
        text = re.sub(pattern, BREAK, text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize("name", RUBRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_sentence_of_the_source_texts_is_copied(name: str, seed: str, shared: Callable[[str], Path]) -> None:
    """No run of 10 words or 16 Chinese characters is shared, apart from labels, entry phrases and type names."""
    source = shared(f"seeds/{seed}").read_text(encoding="utf-8")
    assert shared_runs(_own_text(name), source) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_the_check_finds_a_copied_sentence(seed: str, shared: Callable[[str], Path]) -> None:
    """A stretch of a source text is found again although case, punctuation and line breaks differ."""
    source = shared(f"seeds/{seed}").read_text(encoding="utf-8")
    middle = source[len(source) // 2 : len(source) // 2 + 400]
    disguised = "\n".join(re.sub(r"[,。,:•]", " ; ", middle.upper()).split(" "))
    assert shared_runs(disguised, source)


def test_short_names_may_be_shared() -> None:
    """A run below the limit is no copy."""
    source = "one two three four five six seven eight nine ten"
    assert shared_runs("one two three four five six seven eight nine", source) == []
    assert shared_runs(source + " eleven", source) == [source]
