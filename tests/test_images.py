"""Images of items: what is taken, what is refused, and what a judge is sent."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import Run, make_spec
from evenhand.errors import InputError, ItemError, RubricError, RunError
from evenhand.estimate import estimate
from evenhand.images import MAX_BYTES, MAX_IMAGES, data_url, located, of_item
from evenhand.inspection import inspect_item
from evenhand.item import Item
from evenhand.item_values import Image
from evenhand.report.terminal import item_lines
from evenhand.sources import BadRow, read_items
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from evenhand.trial import TrialKey
from item_specs import SPEC
from rubric_texts import rubric
from runs import rows, run_it, statuses, summary, write_jsonl

TEXT = """\
rubric: seen
mode: score
item:
  required: {question: text, answer: text}
  optional: {image: images}
criteria:
  - {name: truth, text: Is it true?, scale: {range: [0, 4]}}
"""
SHOWN = rubric(TEXT + "images: {shown: true}\n")
HIDDEN = rubric(TEXT)


def png(width: int = 2, height: int = 3, tail: bytes = b"") -> bytes:
    """The head of a PNG."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII5B", 13, b"IHDR", width, height, 8, 2, 0, 0, 0) + tail


def jpeg(width: int = 2, height: int = 3) -> bytes:
    """The head of a JPEG: an application segment, fill bytes, then the frame."""
    frame = struct.pack(">BHH", 8, height, width) + b"\x03" + b"\x01\x22\x00" * 3
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"J" * 14 + b"\xff\xff\xc2" + struct.pack(">H", 17) + frame


def gif(width: int = 2, height: int = 3) -> bytes:
    """The head of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00" * 20


def webp(kind: bytes, body: bytes) -> bytes:
    """A WebP with one chunk."""
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


LOSSY = webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 2, 3 | 0x4000))
LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", 1 | 2 << 14) + b"\x00" * 8)
EXTENDED = webp(b"VP8X", b"\x00" * 4 + b"\x01\x00\x00" + b"\x02\x00\x00")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read(folder: Path, *images: Any) -> list[Item | BadRow]:
    """Rows with these images, read from a file in the folder."""
    lines = [{"question": "q", "answer": "a", "images": value} for value in images]
    return list(read_items(str(write_jsonl(folder / "d.jsonl", lines)), SPEC, open_images=True))


def image(folder: Path, reference: str) -> Image:
    """The one image of the one row."""
    (item,) = read(folder, reference)
    assert isinstance(item, Item), item
    (found,) = of_item(item.fields)
    return found


def problem(folder: Path, reference: Any) -> str:
    """What is wrong with the images of a row, with line and remedy."""
    (row,) = read(folder, reference)
    assert isinstance(row, BadRow)
    return "\n".join(problem.render("d.jsonl") for problem in row.problems)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(), "image/png"),
        (jpeg(), "image/jpeg"),
        (gif(), "image/gif"),
        (LOSSY, "image/webp"),
        (LOSSLESS, "image/webp"),
        (EXTENDED, "image/webp"),
    ],
    ids=["png", "jpeg", "gif", "lossy", "lossless", "extended"],
)
@pytest.mark.parametrize("way", ["file", "data", "base64"])
def test_four_kinds_are_told_by_their_bytes(tmp_path: Path, data: bytes, media_type: str, way: str) -> None:
    """Kind and size come from the header, whatever a file is called or a data address says; three ways to give one."""
    (tmp_path / "x.txt").write_bytes(data)
    given = {"file": "x.txt", "data": f"data:image/bmp;base64,{b64(data)}", "base64": b64(data)}[way]
    found = image(tmp_path, given)
    assert (found.media_type, found.width, found.height, found.bytes) == (media_type, 2, 3, len(data))
    assert found.inline == (way != "file")
    (sent,) = located({"image": (found,)}, tmp_path).values()
    assert data_url(sent) == f"data:{media_type};base64,{b64(data)}"


def test_addresses_are_taken_as_they_are(tmp_path: Path) -> None:
    """An http(s) address is not fetched; it is known by its text."""
    assert image(tmp_path, "https://h.example/a.png?x=1") == Image("https://h.example/a.png?x=1")
    assert located({"image": (Image("https://h.example/a.png"),)}, tmp_path) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gone.png", "images 'gone.png' is not there: no such file"),
        ("/gone/x.png", "'/gone/x.png' is not there"),
        ("sub", "'sub' is no file"),
        ("a\0b", "can't be read: no file can have this name"),
        ("n" * 5000, "can't be read: File name too long"),
        ("iVBORw0KGgo!" + "x" * 5000, "is neither a file nor valid base64"),
        ("text.png", "is no PNG, JPEG, GIF or WebP image; convert it; its bytes count, not its name"),
        ("empty.png", "is no PNG, JPEG, GIF or WebP image"),
        ("cut.png", "is a broken image/png"),
        ("cut.jpg", "is a broken image/jpeg"),
        ("bomb.png", "has 100000x100000 pixels, more than 64,000,000; scale it down"),
        ("flat.gif", "has no pixels"),
        ("big.png", "has 10,000,001 bytes, more than 10,000,000"),
        ("data:image/png,abc", "is not base64"),
        ("data:image/png;base64,@@@@", "is not valid base64; data:image/png;base64,... or a path"),
        ("data:image/png;base64,aGVsbG8=", "is no PNG, JPEG, GIF or WebP image"),
        ("s3://bucket/a.png", "has the scheme s3:; give a path, an http(s) address, or base64"),
        ("file:///a.png", "has the scheme file:"),
        ("https://", "is no address that can be fetched"),
        ("https://h/a b.png", "is no address that can be fetched"),
        (["a.png"] * (MAX_IMAGES + 1), "the row has 17 images, more than 16"),
        (["8mb.png"] * 4, "the row's images have 32,000,000 bytes together, more than 25,000,000"),
    ],
)
def test_what_can_not_be_sent_makes_a_bad_row(tmp_path: Path, given: Any, said: str) -> None:
    """Each mistake is told with its line, what is wrong, and a remedy."""
    (tmp_path / "sub").mkdir()
    files = {
        "a.png": png(), "text.png": b"hello", "empty.png": b"", "cut.png": png()[:18], "cut.jpg": jpeg()[:26],
        "bomb.png": png(100_000, 100_000), "flat.gif": gif(0), "8mb.png": png(tail=bytes(8_000_000 - 29)),
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with (tmp_path / "big.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    told = problem(tmp_path, given)
    message, _, remedy = said.partition("; ")
    assert told.startswith("d.jsonl:1") and message in told and remedy in told
    if given == "gone.png":
        assert f"relative paths start in {tmp_path}" in told


def test_a_bad_image_stops_the_run_before_anything_is_sent(tmp_path: Path) -> None:
    """The run ends with the row's line and keeps no folder; --skip-bad goes on without the row."""
    (tmp_path / "ok.png").write_bytes(png())
    lines = [{**row, "image": name} for row, name in zip(rows(2), ("ok.png", "no.png"), strict=True)]
    data = write_jsonl(tmp_path / "d.jsonl", lines)
    with pytest.raises(ItemError, match=r"d\.jsonl:2.*no\.png"):
        run_it(data, SHOWN, "fake", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run_it(data, SHOWN, "fake", tmp_path / "run", skip_bad=True)
    assert statuses(tmp_path / "run") == {("i0", "", 0): "scored"}


def test_a_vision_judge_gets_the_images_as_parts(tmp_path: Path, server: FakeServer) -> None:
    """After the text of the user's message, under their heading, in order: bytes as data, addresses as they are."""
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics" / "a.png").write_bytes(png())
    row = {**rows(1)[0], "image_path": ["pics/a.png", "https://h.example/b.png", b64(gif())]}
    data = write_jsonl(tmp_path / "d.jsonl", [row])
    server.reset()
    run_it(data, SHOWN, "openai:m", tmp_path / "run", base_url=server.with_faults())
    system, user = server.requests()[-1]["body"]["messages"]
    assert isinstance(system["content"], str)
    text, heading, *images = user["content"]
    assert "It is 0." in text["text"] and heading == {"type": "text", "text": "Image:"}
    urls = [f"data:image/png;base64,{b64(png())}", "https://h.example/b.png", f"data:image/gif;base64,{b64(gif())}"]
    assert images == [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    assert statuses(tmp_path / "run") == {("i0", "", 0): "scored"}
    assert "warnings" in summary(tmp_path / "run") and not summary(tmp_path / "run")["warnings"]


def test_show_names_images_and_the_store_keeps_no_bytes(tmp_path: Path) -> None:
    """`show --item` prints name and size; a file's bytes are not in the run folder, and exports give what was given."""
    (tmp_path / "a.png").write_bytes(png(tail=b"SECRET BYTES"))
    row = {**rows(1)[0], "image": ["a.png", "https://h.example/b.png", f"data:;base64,{b64(gif())}"]}
    data = write_jsonl(tmp_path / "d.jsonl", [row])
    run_it(data, SHOWN, "fake", tmp_path / "run")
    lines = "\n".join(item_lines(inspect_item(tmp_path / "run", "i0")))
    for line in ("[image: a.png, 41 bytes]", "[image: https://h.example/b.png]", "[image: inline gif, 30 bytes]"):
        assert line in lines
    stored = b"".join(file.read_bytes() for file in (tmp_path / "run").iterdir())
    assert b"SECRET BYTES" not in stored and b64(b"SECRET BYTES").encode() not in stored
    (exported,) = Run(tmp_path / "run").rows()
    assert exported["image"] == row["image"]


def test_figures_by_image(tmp_path: Path) -> None:
    """--by tells an image by its name, under whichever column it was given, shown or not."""
    (tmp_path / "a.png").write_bytes(png())
    lines = [{**rows(2)[0], "image_path": "a.png"}, rows(2)[1]]
    data = write_jsonl(tmp_path / "d.jsonl", lines)
    for shown in (SHOWN, HIDDEN):
        out = tmp_path / shown.digest
        run_it(data, shown, "fake", out)
        assert list(summary(out, by="image_path")["by"]) == ["(none)", "a.png"]


def test_a_changed_file_is_a_changed_row(tmp_path: Path) -> None:
    """A resume refuses other bytes under the same name, and takes the same bytes under another."""
    (tmp_path / "a.png").write_bytes(png())
    data = write_jsonl(tmp_path / "d.jsonl", [{**rows(1)[0], "image": "a.png"}])
    run_it(data, SHOWN, "fake", tmp_path / "run")
    (tmp_path / "a.png").rename(tmp_path / "b.png")
    write_jsonl(data, [{**rows(1)[0], "image": "b.png"}])
    assert run_it(data, SHOWN, "fake", tmp_path / "run").asked == 0
    (tmp_path / "b.png").write_bytes(png(5, 5))
    with pytest.raises(RunError, match=r"item i0: its content changed\n    image: '\[[0-9a-f]{8} b\.png\]' -> "):
        run_it(data, SHOWN, "fake", tmp_path / "run")


def test_rows_without_id_are_known_by_their_images_bytes(tmp_path: Path) -> None:
    """Two rows that differ in the image only are two items; a name does not make one."""
    for name, data in (("a.png", png()), ("same.png", png()), ("other.png", png(9, 9))):
        (tmp_path / name).write_bytes(data)
    first, same, other = (row.id for row in read(tmp_path, "a.png", "same.png", "other.png") if isinstance(row, Item))
    assert same == f"{first}-1"
    assert other not in (first, same)


def test_an_image_that_changes_before_it_is_sent_is_a_failed_trial(tmp_path: Path, server: FakeServer) -> None:
    """Bytes are read again at send time and must be those that were checked; the other trials go on."""
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(png())
    lines = [{**row, "image": f"{tmp_path}/{name}.png"} for row, name in zip(rows(3), "abc", strict=True)]

    def reread() -> Iterator[dict[str, Any]]:
        yield from lines
        (tmp_path / "a.png").write_bytes(png(7, 7))
        (tmp_path / "b.png").unlink()

    run_it(reread(), SHOWN, "openai:m", tmp_path / "run", base_url=server.with_faults(), concurrency=1)
    assert statuses(tmp_path / "run") == {("i0", "", 0): "failed", ("i1", "", 0): "failed", ("i2", "", 0): "scored"}
    (error,) = summary(tmp_path / "run")["errors"].values()
    assert "a.png' changed after the row was read" in error
    with Store.open(tmp_path / "run") as store:
        assert "no such file" in store.verdicts_of("i1")[TrialKey("i1", "", 0)].detail


def test_a_request_is_known_by_its_images_bytes(tmp_path: Path) -> None:
    """Other bytes make another request digest; another name does not."""

    def digest(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        rows_ = write_jsonl(tmp_path / f"{name}.jsonl", [{**rows(1)[0], "image": name}])
        run_it(rows_, SHOWN, "fake", tmp_path / name.replace(".", "-"))
        (trial,) = inspect_item(tmp_path / name.replace(".", "-"), "i0")["trials"]
        return str(trial["replies"][0]["request"])

    assert digest("a.png", png()) == digest("b.png", png()) != digest("c.png", png(8, 8))


def test_hidden_images_are_told_once_and_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rubric that hides images needs no files; a warning on stderr and in the summary tells of how many items."""
    from evenhand.cli.main import run

    lines = [{**row, "image": "nowhere.png"} for row in rows(2)] + [rows(3)[2]]
    data = write_jsonl(tmp_path / "d.jsonl", lines)
    file = tmp_path / "seen.yaml"
    file.write_text(TEXT, encoding="utf-8")
    command = ["judge", str(data), "--rubric", str(file), "--judge", "fake", "--out", str(tmp_path / "run")]
    assert run([*command, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err.count("warning: seen does not show the judge the images of 2 items") == 1
    assert json.loads(out)["warnings"] == {"images not shown": 2}
    assert "image" not in str(inspect_item(tmp_path / "run", "i0")["trials"][0]["prompt"])


def test_a_judge_that_reads_text_only_is_refused_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that the rubric shows are not dropped in silence; rows without images are judged all the same."""
    from evenhand.backends.fake import Fake

    monkeypatch.setattr(Fake, "takes_images", False)
    row = {**rows(1)[0], "image": "https://h.example/a.png"}
    with pytest.raises(InputError, match="reads text only, but seen shows the images of 1 item"):
        run_it([row], SHOWN, "fake", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="reads text only"):
        estimate(make_spec([row], SHOWN, "fake"))
    run_it(rows(1), SHOWN, "fake", tmp_path / "run")
    assert statuses(tmp_path / "run") == {("i0", "", 0): "scored"}


def test_local_judges_read_text_only() -> None:
    """The local backend says so; those that send or replay a conversation take images."""
    from evenhand.backends.fake import Fake
    from evenhand.backends.local import LocalBackend
    from evenhand.backends.openai_chat import ChatWire
    from evenhand.backends.replay import Replay

    assert [b.takes_images for b in (LocalBackend, Fake, ChatWire, Replay)] == [False, True, True, True]


def test_a_dry_run_counts_images_apart(tmp_path: Path) -> None:
    """Their number and bytes stand beside the tokens, which are those of the text alone."""
    (tmp_path / "a.png").write_bytes(png(tail=bytes(100_000)))
    with_image = [{**row, "image": "a.png"} for row in rows(3)]
    told = estimate(make_spec(str(write_jsonl(tmp_path / "d.jsonl", with_image)), SHOWN, "fake"))
    bare = estimate(make_spec(rows(3), SHOWN, "fake"))
    assert (told["images"], told["image_bytes"]) == (3, 3 * 100_029)
    assert (bare["images"], bare["image_bytes"]) == (0, 0)
    assert bare["prompt_tokens"] <= told["prompt_tokens"] < bare["prompt_tokens"] + 20
    hidden = estimate(make_spec(with_image, HIDDEN, "fake"))
    assert (hidden["images"], hidden["images_not_shown"]) == (0, 3)


def test_pairs_have_images_too(tmp_path: Path) -> None:
    """With --pairs the images of a prompt are checked, and found beside the data file."""
    text = TEXT.replace("answer: text", "response_a: text, response_b: text").replace("mode: score", "mode: compare")
    text = text.replace("{range: [0, 4]}", "{values: [A, B, tie], slots: true}") + "images: {shown: true}\n"
    (tmp_path / "a.png").write_bytes(png())
    lines = [{"id": "p", "question": "q", "responses": ["x", "y"], "image": name} for name in ("a.png", "no.png")]
    data = write_jsonl(tmp_path / "d.jsonl", lines[:1])
    run_it(data, rubric(text), "fake", tmp_path / "run", pairs="all")
    assert set(statuses(tmp_path / "run").values()) == {"scored"}
    write_jsonl(data, lines[1:])
    with pytest.raises(ItemError, match=r"no\.png"):
        run_it(data, rubric(text), "fake", tmp_path / "other", pairs="all")


def test_usual_columns_are_read_as_the_one_field_of_images() -> None:
    """image, images and image_path stand for it, unless the rubric uses the name for something else."""
    assert dict(HIDDEN.item.aliases) == {"images": "image", "image_path": "image"}
    other = rubric(TEXT.replace("{image: images}", "{image: images, images: text}"))
    assert dict(other.item.aliases) == {"image_path": "image"}
    two = rubric(TEXT.replace("{image: images}", "{left: images, right: images}"))
    assert dict(two.item.aliases) == {}


def test_shown_images_need_a_field() -> None:
    """A rubric that shows images and reads none is a mistake."""
    with pytest.raises(RubricError, match="images are shown, but no input is of type images"):
        rubric(TEXT.replace("  optional: {image: images}\n", "") + "images: {shown: true}\n")


@pytest.mark.parametrize(
    "address",
    [
        "http://user:pa55-word@h.example/x.png",
        "https://pa55-word@h.example/x.png",
        "http://user:pa55-word/more@h.example/x.png",
        "ftp://user:pa55-word@h.example/x.png",
    ],
)
@pytest.mark.parametrize("opened", [True, False])
def test_an_address_with_a_password_is_refused(tmp_path: Path, address: str, opened: bool) -> None:
    """It would be stored and printed; what is told has a remedy and does not repeat it."""
    if opened or "/more" not in address:
        data = str(write_jsonl(tmp_path / "d.jsonl", [{"question": "q", "answer": "a", "images": address}]))
        (row,) = read_items(data, SPEC, open_images=opened)
        assert isinstance(row, BadRow)
        told = "\n".join(problem.render("d.jsonl") for problem in row.problems)
        assert "address" in told and "pa55" not in told
    assert image(tmp_path, "https://h.example/a@2x.png").reference == "https://h.example/a@2x.png"


@pytest.mark.parametrize(
    ("column", "given", "kept"),
    [
        ("images", "http://user:pa55-word@h.example/x.png", "http://...@h.example/x.png"),
        ("image", "http://user:pa55-word/more@h.example/x.png", "http://...@h.example/x.png"),
        ("picture", ["a.png", "ftp://pa55-word@h.example/x.png"], ["a.png", "ftp://...@h.example/x.png"]),
        ("image", '["a@2.png", "https://u:pa55-word@h.example/é.png"]', '["a@2.png", "https://...@h.example/é.png"]'),
        ("image", '["https://u:pa55-word@h.example/x.png"', "..."),
        ("image", [{"url": "https://u:pa55-word@h.example/x.png"}], [{"url": "https://...@h.example/x.png"}]),
    ],
)
def test_a_refused_row_is_kept_without_the_password(tmp_path: Path, column: str, given: Any, kept: Any) -> None:
    """What is left out is stored and exported, and with it no name or password of an image's address."""
    good = {"question": "q", "answer": "a", "image": "https://h.example/a@2x.png", "by": "me@h.example"}
    bad = {"question": "q", "answer": "http://u:p@h.example", column: given}
    mapping = {"image": "picture"} if column == "picture" else {}
    lines = [{**good, "picture": good["image"]} if mapping else good, bad]
    run_it(lines, SHOWN, "fake", tmp_path / "run", skip_bad=True, map=mapping)
    first, second = Run(tmp_path / "run").rows()
    assert second["status"] == "bad_row"
    assert (second[column], second["answer"]) == (kept, "http://u:p@h.example")
    assert (first["image"], first["by"]) == ([good["image"]], "me@h.example")
    assert not any(b"pa55-word" in file.read_bytes() for file in (tmp_path / "run").iterdir())


@pytest.mark.parametrize("name", ["a\0b.png", "a\ud800.png"])
def test_a_name_that_no_file_can_have_is_told_plainly(name: str) -> None:
    """A NUL or half a surrogate pair in a path is one problem, in words of ours."""
    (row,) = read_items([{"question": "q", "answer": "a", "images": name}], SPEC, open_images=True)
    assert isinstance(row, BadRow)
    (told,) = row.problems
    assert not any(word in told.message for word in ("null byte", "codec", "\0", "\ud800"))
