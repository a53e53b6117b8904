"""Take the pictures of reports again, from the recorded replies: python docs/images/screenshots.py

Needs chromium and the groups of packages `browser` and `report`.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from evenhand.cli.main import run

DOCS = Path(__file__).resolve().parents[1]
JUDGED = {
    "doc-qa": ["--rubric", "doc-qa", "--variant", "detail=anchors"],
    "hhh": ["--rubric", "hhh", "--no-re-ask"],
    "critic": ["--rubric", "alignmm-critic"],
}
LABELS = ["--labels", "examples/doc-qa-labels.csv"]


def reports() -> None:
    """Judge the examples by their recordings and write a report of each, in the working folder."""
    for name, how in JUDGED.items():
        judge = ["--judge", f"replay:recorded/{name}.jsonl", "--no-reason", "--out", f"runs/{name}"]
        assert run(["judge", f"examples/{name}.jsonl", *how, *judge]) == 0
        labels = LABELS if name == "doc-qa" else []
        assert run(["report", f"runs/{name}", "--charts", "--out", f"{name}.html", *labels]) == 0


def take(page: Page, name: str) -> None:
    """A picture of what is in sight, with few colours."""
    shot = Image.open(io.BytesIO(page.screenshot()))
    shot.convert("RGB").quantize(96).save(DOCS / "images" / f"report-{name}.png", optimize=True)


def main() -> None:
    """The head of the first report, a pair of the second, and the types of questions of the third, dark."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(DOCS.parent / "examples")
        Path("recorded").symlink_to(DOCS / "recorded")
        reports()
        with sync_playwright() as playwright:
            chromium = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, scheme in (("doc-qa", "light"), ("hhh", "light"), ("critic", "dark")):
                fragment = "#item=1" if name == "hhh" else ""
                page = browser.new_page(viewport={"width": 1200, "height": 860}, color_scheme=scheme)
                page.goto(Path(f"{name}.html").resolve().as_uri() + fragment)
                page.wait_for_selector("body[data-ready]")
                if name == "critic":
                    page.get_by_role("heading", name="By type").evaluate("heading => heading.scrollIntoView()")
                if name == "hhh":
                    page.locator("dialog .sides").evaluate("texts => texts.scrollIntoView({block: 'end'})")
                take(page, name)
            browser.close()


if __name__ == "__main__":
    main()
