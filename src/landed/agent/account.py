"""The account at the end of a run: what the records have of the turn, and what they don't bear out.

The report is composed from the records and is what counts. Beside it the model's last words are
compared with them (`landed.agent.claims`); what stands in no record is shown to the person as such,
and put to the model before it is asked again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from landed.agent.claims.check import Claim, effects_of, unsupported
from landed.agent.ledger import told_states
from landed.agent.loop import Account
from landed.agent.messages import Message, calls_of, text_of
from landed.core.operation import Operation
from landed.core.plan import plan_from
from landed.core.session import Input
from landed.core.undo import release_from, release_id
from landed.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An account, and the claims in it as they are put to the model."""

    account: Account
    claims: tuple[Claim, ...]


async def account_of(
    rt: Runtime, heard: Input, messages: Sequence[Message], *, own: Collection[str]
) -> Told:
    """Return the account of an input's turn; `own` are tools that leave no record.

    Only words of the model are judged: what was composed from the records says where it is from.
    """
    told = await rt.report(heard.turn)
    last = messages[-1] if messages else None
    says = text_of(last) if last and last["role"] == "assistant" and "tells" not in last else ""
    operations = await _operations(rt, told.operations, messages) if says.strip() else ()
    claims = _claims(rt, says, operations, messages, own) if says.strip() else ()
    return Told(
        account={
            "turn": heard.turn,
            "report": told.text,
            "operations": list(told.operations),
            "questions": list(told.questions),
            "unsupported": [(claim.sentence, claim.to_person) for claim in claims],
        },
        claims=claims,
    )


async def _operations(
    rt: Runtime, of_turn: Sequence[str], messages: Sequence[Message]
) -> Sequence[Operation]:
    """Return the operations of the turn and of the plans that were told of, and what undid them.

    What is read grows with what the model is shown, and not with what is stored.
    """
    reader = rt.driver.reader
    plans = [plan_from(record) for record in await reader.load(*told_states(messages))]
    made = [place.record for plan in plans for place in plan.places if place.record]
    ids = dict.fromkeys([*made, *of_turn])
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
