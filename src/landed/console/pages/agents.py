"""The agent that leads a conversation here: whether it is at work, live, and the button to stop it.

A press is a form with what was seen: pressed twice on one page it is one press, and only on a page
that says that the agent is stopping does it stop at once.
"""

from urllib.parse import quote

from starlette.responses import Response

from landed.agent.button import Work
from landed.console.pages.live import on_change, streamed
from landed.console.visit import Page, Visit
from landed.runtime.auditing import is_text
from landed.server.models import NAME_MAX
from landed.server.problems import absent


def work_of(visit: Visit, session: str) -> Work | None:
    """Return what an agent of this process does in a conversation, None where none leads it."""
    return visit.console.buttons.work(tenant=visit.who.tenant, session=session)


async def events(visit: Visit) -> Response:
    """Send what the agent does, whenever that is another."""
    name = visit.named("session")
    await require_session(visit, name)

    async def look() -> str:
        work = work_of(visit, name) or Work.IDLE
        return visit.part("_agent.html", session=name, work=work)

    return streamed(visit, on_change(visit, look))


async def stop(visit: Visit) -> Response:
    """Press the button of a conversation, as it was seen."""
    name = visit.named("session")
    await require_session(visit, name)
    if visit.form.get("seen") == work_of(visit, name):
        await visit.here.stop(name, why=visit.form.get("why", ""))
    return visit.go(f"/sessions/{quote(name)}")


async def require_session(visit: Visit, name: str) -> None:
    """Raise `ProblemError` for a conversation that there is not, or that is not theirs."""
    if not 0 < len(name) <= NAME_MAX or not is_text(name):
        raise absent()
    await visit.here.conversation(name)


PAGES = (
    Page(path="/agents/events/{session:whole}", answer=events, live=True),
    Page(path="/agents/stop/{session:whole}", answer=stop, method="POST"),
)
