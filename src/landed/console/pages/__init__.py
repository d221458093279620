"""Every page of the console, in one table: a file for each noun brings its own.

To add pages, write `pages/NOUN.py` with a tuple `PAGES` of `Page`, and name it here. The order is
that of the navigation.
"""

from landed.console.pages import (
    agents,
    audit,
    cases,
    lists,
    live,
    operation,
    plans,
    questions,
    search,
    session,
    signing,
    trying,
    waiting,
)
from landed.console.visit import Page

PAGES: tuple[Page, ...] = (
    *waiting.PAGES,
    *lists.PAGES,
    *plans.PAGES,
    *live.PAGES,
    *questions.PAGES,
    *cases.PAGES,
    *operation.PAGES,
    *session.PAGES,
    *agents.PAGES,
    *search.PAGES,
    *audit.PAGES,
    *trying.PAGES,
    *signing.PAGES,
)
