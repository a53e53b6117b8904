"""What failed answers of real servers mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.backends.http_errors import (
    error_for,
    is_filtered,
    read_fault,
    refused_parameter,
    refuses_system_role,
    retry_after,
)
from evenhand.errors import AccessError, FinalBackendError, RetryableBackendError, UnsupportedFeatureError


def raised(status: int, body: Any, form: Any = "schema", headers: dict[str, str] | None = None) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_for(status, read_fault(data), form, headers or {}, now=0.0, where="http://x/v1")


@pytest.mark.parametrize(
    ("status", "body", "form", "kind"),
    [
        (
            400,
            {"error": {"message": "Invalid 'response_format' of type 'json_schema'"}},
            "schema",
            "feature",
        ),
        (400, {"error": "json_schema is not supported by this model"}, "schema", "feature"),
        (404, {"error": {"message": "No endpoints found that support tool use."}}, "tool", "feature"),
        (422, {"detail": [{"loc": ["body", "tools"], "msg": "extra fields not permitted"}]}, "tool", "feature"),
        (501, {"error": {"message": "function calling is not implemented"}}, "tool", "feature"),
        (400, {"error": {"message": "tool_choice: unsupported"}}, "text", "final"),
        (400, {"error": {"message": "tools are not supported"}}, "schema", "final"),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, "text", "final"),
        (400, {"error": {"message": "Invalid model name passed in model=x"}}, "text", "access"),
        (404, {"error": {"message": "model 'x' not found, try pulling it first"}}, "text", "access"),
        (404, b"404 page not found", "schema", "access"),
        (402, {"error": {"message": "Insufficient credits"}}, "text", "access"),
        (429, {"error": {"message": "quota", "type": "insufficient_quota"}}, "text", "access"),
        (429, {"error": {"message": "slow down"}}, "text", "retry"),
        (409, b"", "text", "retry"),
        (425, b"", "text", "retry"),
        (500, {"error": {"message": "function crashed"}}, "tool", "retry"),
        (529, b"<html>overloaded</html>", "text", "retry"),
        (413, b"Request Entity Too Large", "text", "final"),
        (400, {"error": {"message": "messages must not be empty"}}, "schema", "final"),
    ],
)
def test_kinds_of_failure(status: int, body: Any, form: str, kind: str) -> None:
    """Each failed answer becomes the error that says who must act."""
    kinds = {
        "feature": UnsupportedFeatureError,
        "final": FinalBackendError,
        "access": AccessError,
        "retry": RetryableBackendError,
    }
    error = raised(status, body, form)
    assert type(error) is kinds[kind]
    assert error.status == status


def test_a_page_of_html_is_told_as_text() -> None:
    """A proxy's page is shown as words, cut short."""
    assert raised(502, b"<html><h1>Bad   Gateway</h1></html>").message == "http://x/v1 answered 502: Bad Gateway"
    assert len(raised(502, b"x" * 5000).message) < 400
    assert raised(500, b"").message.endswith("no reason given")


def test_a_validation_list_shows_no_input() -> None:
    """Of a validation list only places and messages are told, never the prompt it quotes."""
    body = {"detail": [{"loc": ["body", "n"], "msg": "must be 1", "input": "the whole prompt with tools"}]}
    error = raised(422, body, "tool")
    assert "body.n: must be 1" in error.message
    assert "whole prompt" not in error.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1", "retry-after-ms": "350"}, 0.35),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT", "date": "Thu, 01 Jan 1970 00:01:30 GMT"}, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-reset-requests": "1s"}, 1.0),
        ({"x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m1.5s",
                "x-ratelimit-remaining-tokens": "20",
                "x-ratelimit-reset-tokens": "9h",
            },
            61.5,
        ),
        ({"x-ratelimit-reset-requests": "later"}, None),
        ({}, None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    """The time of the next try is read from every header in use; what can't be read says nothing."""
    assert retry_after(429, headers, now=40.0) == seconds


def test_reset_headers_matter_for_rate_limits_only() -> None:
    """Limits are reported with every answer; only a rate limit error makes them a time to wait."""
    assert retry_after(500, {"x-ratelimit-reset-requests": "30s"}, now=0.0) is None


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"message": "Unsupported parameter", "param": "max_tokens"}, "max_tokens"),
        ({"message": "'max_tokens' is not supported, use 'max_completion_tokens'"}, "max_tokens"),
        ({"message": "Unsupported value: 'temperature' does not support 0 with this model"}, "temperature"),
        ({"message": "Unrecognized request argument supplied: seed"}, "seed"),
        ({"message": "Invalid value: temperature must be at most 2", "param": "temperature"}, None),
        ({"message": "maximum context length is 10 tokens, unsupported max_tokens"}, None),
        ({"message": "unknown error"}, None),
    ],
)
def test_parameters_refused_by_name(error: dict[str, str], refused: str | None) -> None:
    """A parameter is dropped only where the server says that it does not know or support it."""
    fault = read_fault(json.dumps({"error": error}).encode())
    names = ["temperature", "max_tokens", "max_completion_tokens", "seed"]
    assert refused_parameter(fault, names) == refused


def test_system_role_and_filter() -> None:
    """A refused system role and a filtered prompt are told from other rejections."""
    role = read_fault(b'{"error": {"message": "\'messages[0].role\' does not support \'system\' with this model"}}')
    assert refuses_system_role(role)
    filtered = read_fault(b'{"error": {"message": "filtered", "code": "content_filter"}}')
    assert is_filtered(400, filtered) and not is_filtered(500, filtered) and not is_filtered(400, role)
