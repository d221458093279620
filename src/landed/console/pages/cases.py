"""A case: an effect that nobody can find out about, decided by a person from its page alone."""

from urllib.parse import quote

from starlette.responses import Response

from landed.console.visit import Page, Visit
from landed.core.case import Ruling, Standing
from landed.core.errors import ProposalError
from landed.core.operation import Source
from landed.runtime.auditing import is_text
from landed.runtime.inbox import Inbox
from landed.server.auth import Role
from landed.server.problems import absent

PATIENCE_S = 2.0
NOTE_MAX = 2000  # characters
ID_MAX = 4000  # characters; what a service calls something, and whose it is, with its escapes
NOTES = frozenset({"resolve", "replayed"})
NEEDS_NOTE = frozenset({Ruling.LANDED, Ruling.ABSENT, Ruling.SIGN_OFF})


async def show(visit: Visit) -> Response:
    """Show a case, over or not."""
    return _page(visit, await _case(visit), note=visit.asked("note"))


async def resolve(visit: Visit) -> Response:
    """Say as a person how it is; it is written down under their name."""
    case = await _case(visit)
    note, made = visit.form.get("note", "").strip()[:NOTE_MAX], visit.form.get("made", "").strip()
    given = visit.form.get("ruling", "")
    if given not in case.may:
        return _not_now(visit, case, given)
    ruling = Ruling(given)
    if ruling in NEEDS_NOTE and not note:
        return _page(visit, case, problem="note", status=422)
    verb = visit.rt.resolve(
        case.id, ruling=ruling, by=visit.who.principal, note=note, made=made[:NOTE_MAX]
    )
    try:
        await visit.console.carried(verb, patience_s=PATIENCE_S)
    except ProposalError:
        return _not_now(visit, await _case(visit), given)
    return visit.go(f"/cases/{quote(case.id)}?note=resolve")


def _not_now(visit: Visit, case: Standing, given: str) -> Response:
    """Return what a ruling comes to that the case does not take; the same pressed twice is said."""
    said = [each for each in case.evidence if each.source is Source.PERSON]
    if said and said[-1].by == visit.who.principal and not case.may and given in list(Ruling):
        return visit.go(f"/cases/{quote(case.id)}?note=replayed")
    return _page(visit, case, problem="state", status=409)


def _page(
    visit: Visit, case: Standing, *, note: str = "", problem: str = "", status: int = 200
) -> Response:
    return visit.show(
        "case.html",
        page="case",
        card=case,
        note=note if note in NOTES else "",
        problem=problem,
        alone=True,
        status=status,
    )


async def _case(visit: Visit) -> Standing:
    """Return a case; its id may hold whatever a service calls something."""
    inbox = Inbox(reader=visit.rt.driver.reader, tenant=visit.who.tenant)
    id = visit.named("id")
    if len(id) > ID_MAX or not is_text(id):
        raise absent()
    try:
        return await inbox.case(id)
    except ProposalError:
        raise absent() from None


PAGES = (
    Page(path="/cases/{id:whole}/resolve", answer=resolve, method="POST", role=Role.ADMIN),
    Page(path="/cases/{id:whole}", answer=show, role=Role.ADMIN),
)
