"""The account at the end of a run: what the records have of the turn, and what they don't bear out.

The report is composed from the records and is what counts. Beside it the model's last words are
compared with them (`landed.agent.claims`); what stands in no record is shown to the person as such,
and put to the model before it is asked again.
"""

from collections.abc import Collection, Sequence

from landed.agent.claims.check import Claim, effects_of, unsupported
from landed.agent.ledger import told_states
from landed.agent.loop import Account
from landed.agent.messages import Message, calls_of, text_of
from landed.core.operation import Operation
from landed.core.plan import plan_from
from landed.core.session import Input
from landed.core.undo import release_from, release_id
from landed.runtime.runtime import Runtime


async def account_of(rt: Runtime, heard: Input, claims: Sequence[Claim] = ()) -> Account:
    """Return the account of an input's turn, with the claims that are not borne out."""
    told = await rt.report(heard.turn)
    return {
        "turn": heard.turn,
        "report": told.text,
        "operations": list(told.operations),
        "questions": list(told.questions),
        "unsupported": [(claim.sentence, claim.to_person) for claim in claims],
    }


async def claims_in(
    rt: Runtime, messages: Sequence[Message], *, own: Collection[str]
) -> tuple[Claim, ...]:
    """Return what the last words of a transcript claim and the records don't bear out.

    `own` are tools that leave no record. Only words of the model are judged: what was composed from
    the records says where it is from.
    """
    last = messages[-1] if messages else None
    says = text_of(last) if last and last["role"] == "assistant" and "tells" not in last else ""
    if not says.strip():
        return ()
    return _claims(rt, says, await _operations(rt, messages), messages, own)


async def _operations(rt: Runtime, messages: Sequence[Message]) -> Sequence[Operation]:
    """Return the operations of the plans that were told of, and what undid them.

    What is read grows with what the model is shown, and not with what is stored.
    """
    reader = rt.driver.reader
    plans = [plan_from(record) for record in await reader.load(*told_states(messages))]
    ids = [place.record for plan in plans for place in plan.places if place.record]
    releases = [release_from(record) for record in await reader.load(*map(release_id, ids))]
    undone_by = [release.undo for release in releases if release.undo]
    return [*(await reader.operations(*ids, *undone_by)).values()]


def _claims(
    rt: Runtime,
    says: str,
    operations: Sequence[Operation],
    messages: Sequence[Message],
    own: Collection[str],
) -> tuple[Claim, ...]:
    called = {call["name"] for message in messages for call in calls_of(message)}
    results = [m for m in messages if m["role"] == "toolResult" and "tells" not in m]
    return unsupported(
        says,
        effects_of(operations, rt.driver.reader.contracts),
        tools={tool.name: tool.contract for tool in rt.driver.tools.values()},
        beside=called & set(own),
        seen=[text_of(result) for result in reversed(results)],
        language=rt.settings.language,
    )
