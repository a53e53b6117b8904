"""The project's own shape: sizes, layers, and what an import loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "evenhand"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_FUNCTION = 60
MAX_MODULE = 400
HEAVY = {
    "aiohttp", "click", "msgspec", "narwhals", "numpy", "pyarrow",
    "rich", "ruamel", "scipy", "xllamacpp", "asyncio", "sqlite3",
}  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_sizes(path: Path) -> None:
    """No module is over 400 lines and no function over 60."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_MODULE
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]
    assert long == []


def test_layers() -> None:
    """Imports go down only, as the architecture page draws them."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=SOURCE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_import_is_light() -> None:
    """``import evenhand`` loads none of the heavy packages."""
    loaded = _loaded("import evenhand")
    assert "evenhand" in loaded
    assert loaded & HEAVY == set()


def test_help_is_light() -> None:
    """``evenhand --help`` needs click and nothing heavier."""
    loaded = _loaded("from evenhand.cli.main import run; run(['--help'])")
    assert "evenhand.cli.main" in loaded
    assert loaded & (HEAVY - {"click"}) == set()


def test_public_functions_have_docstrings() -> None:
    """Everything public says what it does."""
    missing = []
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            public = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if public and not node.name.startswith("_") and not ast.get_docstring(node):
                missing.append(f"{path.name}: {node.name}")
    assert missing == []


def test_every_test_states_its_behaviour() -> None:
    """Each test has a docstring."""
    missing = [
        f"{path.name}: {node.name}"
        for path in Path(__file__).parent.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert missing == []


def _loaded(code: str) -> set[str]:
    script = f"import sys, io\nout = sys.stdout\nsys.stdout = io.StringIO()\n{code}\nprint(*sys.modules, file=out)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
