"""The page about the console names what the console has."""

import re
from pathlib import Path

from landed.console.pages import PAGES
from landed.console.pages.live import STREAM_S
from landed.console.pages.plans import PATIENCE_S
from landed.console.seal import LIFETIME_S
from landed.console.visit import Streams

PAGE = (Path(__file__).parents[2] / "docs/reference/console.md").read_text("utf-8")


def rows(head: str) -> set[str]:
    """The paths in the first cells of the table with this head."""
    body = PAGE.split(f"| {head} |\n")[1].split("\n\n")[0]
    firsts = [row.split("|")[1] for row in body.splitlines()[1:]]
    return {path for cell in firsts for path in re.findall(r"`([^`]+)`", cell)}


def test_each_page_and_each_form_is_on_the_page() -> None:
    reads = {page.path for page in PAGES if page.method == "GET" and not page.live}
    exports = {path for path in reads if path.endswith((".json", ".csv"))}
    assert rows("page | shows") == reads - exports - {"/sign-in"}
    presses = {page.path for page in PAGES if page.method == "POST" and not page.open}
    assert rows("form | does | is refused") == presses - {"/sign-out"}


def test_the_bounds_are_those_of_the_code() -> None:
    assert (LIFETIME_S, STREAM_S, PATIENCE_S) == (12 * 3600, 600.0, 2.0)
    assert "for twelve\nhours" in PAGE
    assert "each lasts ten minutes, eight for a person" in PAGE
    assert Streams().each_max == 8
    assert "longer\nthan two seconds" in PAGE
