"""The checkout keeps the house rules, and each rule notices a planted sample that breaks it."""

import pytest

from tests import tidy
from tests.tidy import FUNCTION_MEDIAN_MAX, PAGE_MAX, RULES, Rule, Source

CORE = "src/landed/core/sample.py"
SRC = "src/landed/sample.py"
TEST = "tests/test_sample.py"
SENTENCE = '"""A sample."""\n'
LONG = "x" * 101
# Spelled in two halves, so that the plain text of this file names no host and no path.
HOST = "https://" + "pypi" + ".org"
MACHINE_PATH = "/" + "work" + "/main"

BROKEN: list[tuple[Rule, str, str]] = [
    (tidy.opens_with_a_sentence, SRC, "import json\n"),
    (tidy.opens_with_a_sentence, SRC, ""),
    (tidy.opens_with_a_sentence, TEST, '"""no sentence"""\n'),
    (tidy.lines_are_short, SRC, f"# {LONG}\n"),
    (tidy.lines_are_short, "src/landed/stores/queries.sql", f"-- {LONG}\n"),
    (tidy.files_are_small, SRC, "x = 1\n" * 451),
    (tidy.files_are_small, TEST, "x = 1\n" * 601),
    (tidy.files_are_small, "README.md", "word\n" * 151),
    (tidy.files_are_small, "ARCHITECTURE.md", "word\n" * 301),
    (tidy.functions_are_small, SRC, "def long():\n" + "    x = 1\n" * 40),
    (tidy.functions_are_small, TEST, "async def long():\n" + "    x = 1\n" * 60),
    (tidy.names_use_our_words, SRC, "class JobStore: ..."),
    (tidy.names_use_our_words, SRC, "class Restaurant:\n    def open_task(self): ..."),
    (tidy.names_use_our_words, SRC, "class Restaurant:\n    call_infos: list[str]"),
    (tidy.names_use_our_words, SRC, "class BookingService: ..."),
    (tidy.names_use_our_words, "src/landed/context.py", SENTENCE),
    (tidy.prose_uses_our_words, "README.md", "It runs exactly\nonce."),
    (tidy.prose_uses_our_words, SRC, "# Guaranteed to be kept."),
    (tidy.nothing_is_left_unfinished, SRC, "x = 1  # todo: say why"),
    (tidy.nothing_is_left_unfinished, "docs/page.md", "Not implemented yet."),
    (tidy.nothing_is_left_unfinished, SRC, "def f():\n    raise NotImplementedError"),
    (tidy.no_place_is_named, "Makefile", f"pip install -i {HOST}/simple"),
    (tidy.no_place_is_named, "docs/page.md", f"cd {MACHINE_PATH}"),
    (tidy.no_place_is_named, "docs/page.md", "run farm-tool"),
    (tidy.tests_do_not_sleep, TEST, "import time\ntime.sleep(0.1)"),
    (tidy.tests_do_not_sleep, TEST, "import asyncio\nasyncio.run(asyncio.sleep(delay_s))"),
    (tidy.tests_do_not_sleep, TEST, "from asyncio import sleep"),
    (tidy.core_is_pure, CORE, "import pydantic"),
    (tidy.core_is_pure, CORE, "from landed.stores import sqlite"),
    (tidy.core_is_pure, CORE, "import random"),
    (tidy.core_is_pure, CORE, "from datetime import datetime\nnow = datetime.now()"),
    (tidy.core_has_no_any, CORE, "from typing import Any\nx: Any = 1"),
    (tidy.constraints_are_bare_pins, "constraints.txt", f"a @ {HOST}/a.whl"),
    (tidy.constraints_are_bare_pins, "constraints.txt", "a>=1.0"),
    (tidy.constraints_are_bare_pins, "constraints.txt", "a==1.0 --hash=sha256:00"),
]

KEPT: list[tuple[Rule, str, str]] = [
    (tidy.opens_with_a_sentence, SRC, SENTENCE),
    (tidy.lines_are_short, SRC, "x" * 100),
    (tidy.files_are_small, SRC, "x = 1\n" * 450),
    (tidy.functions_are_small, SRC, "def long():\n" + "    x = 1\n" * 39),
    (tidy.names_use_our_words, SRC, "def keep_metadata(): ...\ndef create_task(): ..."),
    (tidy.names_use_our_words, TEST, "class Job: ..."),
    (tidy.prose_uses_our_words, "README.md", "It takes effect once, or says it does not know."),
    (tidy.nothing_is_left_unfinished, SRC, "try: f()\nexcept NotImplementedError: ..."),
    (tidy.no_place_is_named, "docs/page.md", "GET https://example.org/work/1"),
    (tidy.tests_do_not_sleep, TEST, "import asyncio\nasyncio.sleep(0)"),
    (tidy.tests_do_not_sleep, TEST, f"import asyncio\nasyncio.sleep(9)  {tidy.VIRTUAL}"),
    (tidy.core_is_pure, CORE, "import json\nfrom landed.core.errors import StoreError"),
    (tidy.core_has_no_any, SRC, "from typing import Any\nx: Any = 1"),
    (tidy.constraints_are_bare_pins, "constraints.txt", "a-b.c==1.0.post1"),
]

PAGES = (*PAGE_MAX, "CHANGELOG.md", "LICENSE")


@pytest.fixture(scope="module")
def checkout() -> list[Source]:
    return tidy.sources()


def _named(rule: object) -> str:
    return getattr(rule, "__name__", "")


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_the_checkout_keeps_the_rule(checkout: list[Source], rule: Rule) -> None:
    complaints = [str(one) for source in checkout for one in rule(source)]

    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN, ids=_named)
def test_the_rule_notices(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text)))


@pytest.mark.parametrize(("rule", "path", "text"), KEPT, ids=_named)
def test_the_rule_lets_pass(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))


def test_every_rule_has_a_sample_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


def test_a_complaint_says_where_and_what_to_do() -> None:
    (complaint,) = tidy.core_has_no_any(Source(CORE, "import re\nx: Any = 1"))

    assert str(complaint) == f"{CORE}:2: name the type; core has no `Any`"


def test_no_module_is_dead(checkout: list[Source]) -> None:
    dead = tidy.dead_modules(checkout)

    assert not dead, f"nobody imports or names {', '.join(dead)}: use it or delete it"


def test_a_module_lives_by_an_import_a_name_a_start_or_a_page() -> None:
    sample = {
        "src/landed/__init__.py": 'LAZY = {"open": "landed.by_name"}',
        "src/landed/by_name.py": "from landed import by_import\nimport landed.room.inner",
        "src/landed/by_import.py": "",
        "src/landed/room/__init__.py": "",
        "src/landed/room/inner.py": "",
        "src/landed/by_start.py": 'if __name__ == "__main__": ...',
        "src/landed/by_page.py": "",
        "docs/page.md": "call `landed.by_page.check`, see landed.by_page",
        "src/landed/dead.py": "",
        "tests/test_dead.py": "from landed import dead",
    }

    every = [Source(path, text) for path, text in sample.items()]

    assert tidy.dead_modules(every) == ["landed.dead"]


def test_functions_are_small_as_a_whole(checkout: list[Source]) -> None:
    length = tidy.median_function_lines(checkout)

    assert length < FUNCTION_MEDIAN_MAX, f"the median function has {length} lines: split some"


def test_the_median_leaves_out_docstrings_and_signatures() -> None:
    text = 'def f(\n    a,\n):\n    """Two.\n\n    Lines."""\n    a += 1\n    return a\n'

    assert tidy.median_function_lines([Source(SRC, text)]) == 2


@pytest.mark.parametrize("page", PAGES)
def test_the_page_exists(page: str) -> None:
    assert (tidy.CHECKOUT / page).is_file(), f"write {page}"


def test_the_changelog_says_what_is_not_released_yet() -> None:
    assert "\n## [Unreleased]\n" in (tidy.CHECKOUT / "CHANGELOG.md").read_text("utf-8")
