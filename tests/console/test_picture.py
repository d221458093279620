"""The picture of the console in the README is there, and small enough for whoever reads it."""

from pathlib import Path

from scripts.screenshots import PICTURE

CHECKOUT = Path(__file__).parents[2]
BYTES_MAX = 300_000


def test_the_readme_shows_a_picture_that_is_there_and_small() -> None:
    shown = PICTURE.relative_to(CHECKOUT).as_posix()

    assert f"({shown})" in (CHECKOUT / "README.md").read_text("utf-8")
    assert PICTURE.read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size <= BYTES_MAX
