"""A backend of another package, found through its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from runs import SCORE, rows, summary, write_jsonl

MODULE = """\
from evenhand.verdict import Reply


class Echo:
    deterministic = False
    max_concurrency = 2
    takes_images = False
    forms = ("schema",)

    def __init__(self, settings):
        self.name, self.model = "echo", settings.model
        self.identity = {"backend": "echo", "model": settings.model}

    async def send(self, request):
        return Reply(text='{"reason": "r", "truth": 3, "style": 2}', finish="stop")

    async def aclose(self):
        pass
"""


def test_a_backend_of_another_package(tmp_path: Path) -> None:
    """Installed beside evenhand it is named like the built-in ones, and judges from the command line."""
    site, info = tmp_path / "site", tmp_path / "site" / "echo_judge-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "echo_judge.py").write_text(MODULE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-judge\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[evenhand.backend]\necho = echo_judge:Echo\n", encoding="utf-8")
    (tmp_path / "two.yaml").write_text(SCORE, encoding="utf-8")
    write_jsonl(tmp_path / "items.jsonl", rows(3))
    command = [sys.executable, "-m", "evenhand", "judge", "items.jsonl", "--rubric", "two.yaml", "--out", "run"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    for judge, code in (("echo:m", 0), ("ecko:m", 2)):
        done = subprocess.run(
            [*command, "--judge", judge], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
    assert "echo" in done.stderr  # the close name
    assert summary(tmp_path / "run")["scored"] == 3
