"""A judge without a model: legal answers chosen by what is asked, or by a script."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from evenhand._canon import digest, file_sha256
from evenhand.backend import BackendSettings, Request
from evenhand.backends.bodies import decode
from evenhand.backends.sample import Choice, Draw, legal_value
from evenhand.errors import FinalBackendError, InputError, ItemError, Problem, UnknownNameError
from evenhand.rubric.model import Form, OutputField
from evenhand.verdict import Reply, ToolCall, Usage

#: Names after ``fake:``; the empty name answers with legal values chosen by the request's messages.
BUILTIN = ("", "top", "bottom", "first", "refuse", "garbage", "error")
_REFUSAL = "I can't help with rating this."
_GARBAGE = "Well, there is much to be said about this, on both sides."
_MARK = re.compile(r"<<<[a-z]{4}|[a-z]{4}>>>")
_CHARS_PER_TOKEN = 4
_SHOWN = 100


@dataclass(slots=True)
class ScriptRule:
    """One line of a script.

    Attributes:
        contains: Text that must stand in the messages; None matches every request.
        reply: The reply's text, or the fields of the verdict.
        times: How many requests it answers before it steps aside; None for all.
    """

    contains: str | None
    reply: str | Mapping[str, Any]
    times: int | None = None


@dataclass(slots=True)
class Fake:
    """A deterministic judge that needs no network; a script with ``times`` depends on the order of requests."""

    script: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[ScriptRule, ...] = ()
    name: str = "fake"
    model: str = ""
    forms: tuple[Form, ...] = ("schema", "tool", "json", "text", "lines")
    takes_images = True
    deterministic: bool = True
    max_concurrency: int | None = None

    async def send(self, request: Request) -> Reply:
        """Answer from the script, the built-in behaviour, or with legal values.

        Raises:
            FinalBackendError: the behaviour is "error".
        """
        prompt = _prompt_text(request)
        for rule in self.rules:
            if (rule.contains is None or rule.contains in prompt) and rule.times != 0:
                rule.times = None if rule.times is None else rule.times - 1
                return self._reply(request, prompt, rule.reply)
        if self.script == "error":
            raise FinalBackendError("the fake judge fails as asked", backend=self.name, request_digest=request.digest)
        if self.script == "refuse":
            return self._reply(request, prompt, "", refusal=_REFUSAL)
        if self.script == "garbage":
            return self._reply(request, prompt, _GARBAGE)
        # Fence marks differ between runs and are no part of the question.
        seed = int(digest(_MARK.sub("", prompt)), 16)
        choice: Choice = self.script if self.script in get_args(Choice) else "any"  # type: ignore[assignment]
        return self._reply(request, prompt, legal_value(_schema(request), Draw(seed, choice)))

    async def aclose(self) -> None:
        """Nothing to release."""

    def _reply(
        self, request: Request, prompt: str, answer: str | Mapping[str, Any], refusal: str | None = None
    ) -> Reply:
        text = answer if isinstance(answer, str) else _written(answer, request)
        called = request.form == "tool" and not isinstance(answer, str)
        return Reply(
            text=None if called or refusal else text,
            tool_calls=(ToolCall(request.function or "", text),) if called else (),
            refusal=refusal,
            finish="tool_calls" if called else "stop",
            model=self.name,
            usage=Usage(
                prompt_tokens=-(-len(prompt) // _CHARS_PER_TOKEN),
                completion_tokens=-(-len(refusal or text) // _CHARS_PER_TOKEN),
                cost_usd=0.0,
                latency_s=0.0,
            ),
        )


def open_backend(settings: BackendSettings) -> Fake:
    """Open a fake judge; ``settings.model`` is a built-in behaviour or a script file.

    Raises:
        UnknownNameError: neither of the two.
        InputError: the script can't be read.
        ItemError: the script has bad lines.
    """
    script = settings.model
    if script in BUILTIN:
        return Fake(script, {"backend": "fake", "model": script}, model=script)
    path = Path(script)
    try:
        rules = read_script(path)
    except FileNotFoundError:
        hint = f"{', '.join(BUILTIN[1:])}, or a file"
        raise UnknownNameError("fake judge", script, filter(None, BUILTIN), hint=hint) from None
    except OSError as error:
        hint = "a script is a file of JSON lines with contains and reply"
        raise InputError(f"can't read the script {path}: {error.strerror}", hint=hint) from None
    timed = any(rule.times is not None for rule in rules)
    return Fake("", {"backend": "fake", "sha256": file_sha256(path)}, rules, model=path.name, deterministic=not timed)


def read_script(path: Path) -> tuple[ScriptRule, ...]:
    """The rules of a script: JSON lines ``{"contains": text or null, "reply": text or object, "times": n}``.

    Raises:
        ItemError: bad lines; lists them.
        OSError: the file can't be read.
    """
    rules: list[ScriptRule] = []
    problems: list[Problem] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                rules.append(_rule(decode(line)))
            except ValueError as error:
                problems.append(Problem(number, "$", str(error)))
    if problems:
        raise ItemError(problems[:_SHOWN], file=str(path), more=max(0, len(problems) - _SHOWN))
    if not rules:
        raise ItemError([Problem(None, "", "no lines")], file=str(path))
    return tuple(rules)


def _rule(data: Any) -> ScriptRule:
    if not isinstance(data, dict) or not set(data) <= {"contains", "reply", "times"}:
        raise ValueError("a rule is an object with contains, reply and times")
    rule = ScriptRule(data.get("contains"), data.get("reply", ""), data.get("times"))
    if not isinstance(rule.contains, str | None) or not isinstance(rule.reply, str | dict) or "reply" not in data:
        raise ValueError("contains is text or null, reply is text or an object")
    if rule.times is not None and (not isinstance(rule.times, int) or isinstance(rule.times, bool) or rule.times < 1):
        raise ValueError("times is a whole number of at least 1")
    return rule


def _prompt_text(request: Request) -> str:
    pieces: list[str] = []
    for message in request.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        pieces.extend(str(part.get("text") or part.get("image_url") or part.get("sha256") or "") for part in parts)
    return "\n".join(pieces)


def _schema(request: Request) -> Mapping[str, Any]:
    """What the reply must satisfy: the request's schema, or one made from the fields asked for."""
    if request.schema is not None:
        return request.schema
    return {"type": "object", "properties": {f.name: _field_schema(f) for f in request.fields}}


def _field_schema(asked: OutputField) -> dict[str, Any]:
    if asked.scale is not None:
        return asked.scale.json_schema()
    if asked.kind == "list":
        inner = {item.name: _field_schema(item) for item in asked.items}
        return {"type": "array", "items": {"type": "object", "properties": inner} if inner else {"type": "string"}}
    return {"type": "boolean" if asked.kind == "bool" else "string"}


def _written(answer: Mapping[str, Any], request: Request) -> str:
    """The answer as the form wants it: JSON, or labelled lines, or a published text format."""
    patterns = {f.name: f.patterns for f in request.fields if f.patterns}
    if request.form == "text" and patterns:
        return "\n".join(_patterned(name, value, patterns.get(name, ())) for name, value in answer.items())
    if request.form == "lines":
        texts = {f.name for f in request.fields if f.kind == "text"}
        labels = {n: n.replace("_", " ").capitalize() if n in texts else f"Score for {n}" for n in answer}
        return "\n".join(f"{labels[name]}: {_plain(value)}" for name, value in answer.items())
    return json.dumps(answer, ensure_ascii=False)


def _patterned(name: str, value: Any, patterns: tuple[str, ...]) -> str:
    """A line in which one of the patterns finds the value, for patterns that are little more than literal text."""
    for pattern in patterns:
        line = re.sub(r"\((?!\?)[^()]*\)", lambda _: _plain(value).replace("\\", ""), pattern, count=1)
        line = re.sub(r"\(\?[a-zA-Z]+\)|[$^]|\\b", "", line)
        line = re.sub(r"\\s[*+?]?", " ", line)
        line = re.sub(r"\\(\W)", r"\1", line)
        found = re.search(pattern, line)
        if found and found.groups() and found.group(1) == _plain(value):
            return line
    return f"{name}: {_plain(value)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
