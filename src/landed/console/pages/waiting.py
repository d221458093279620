"""What waits for a person: plans to agree to, questions, cases."""

from starlette.responses import Response

from landed.console.visit import Page, Visit


async def waiting(visit: Visit) -> Response:
    """Show what waits for whoever is signed in."""
    return visit.show("waiting.html", page="waiting")


PAGES = (Page(path="/waiting", answer=waiting, nav="nav.waiting"),)
