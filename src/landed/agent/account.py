"""The account at the end of a run: what the records have of the turn, and what they don't bear out.

The report is composed from the records and is what counts. Beside it the model's last words are
compared with them (`landed.agent.claims`); what stands in no record is shown to the person as such,
and put to the model before it is asked again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from landed.agent.claims import Claim, effects_of, unsupported
from landed.agent.loop import Account
from landed.agent.messages import Message, calls_of, text_of
from landed.core.changes import Kind
from landed.core.operation_record import from_record
from landed.core.session import Input
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
    claims = await _claims(rt, heard, says, messages, own) if says.strip() else ()
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


async def _claims(
    rt: Runtime, heard: Input, says: str, messages: Sequence[Message], own: Collection[str]
) -> tuple[Claim, ...]:
    records = await rt.driver.reader.records(tenant=heard.tenant, session=heard.session)
    operations = [from_record(record) for record in records if record.kind is Kind.OPERATION]
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
