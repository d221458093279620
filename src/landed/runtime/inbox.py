"""What waits for a person, read from the store: cases, plans and questions; nothing is claimed."""

from dataclasses import dataclass

from landed.core.case import BY_STATE, Case, Standing, Why, case_from, standing, standing_alone
from landed.core.changes import Kind, Record
from landed.core.errors import ProposalError
from landed.core.operation import Happened, Operation
from landed.core.question import Question, question_from
from landed.core.session import input_of
from landed.core.store import Selection
from landed.runtime.reader import Reader

PAGE = 500
PAGES_MAX = 200


@dataclass(frozen=True, slots=True)
class Inbox:
    """What waits for somebody in a tenant."""

    reader: Reader
    tenant: str

    async def cases(self) -> tuple[Standing, ...]:
        """Return the cases, oldest first."""
        found = [await self._case(record) for record in await self.waiting()]
        return tuple(case for case in found if case is not None)

    async def questions(self) -> tuple[Question, ...]:
        """Return the questions that nobody has answered yet, oldest first."""
        waiting = await self.waiting()
        return tuple(question_from(record) for record in waiting if record.kind is Kind.QUESTION)

    async def case(self, id: str) -> Standing:
        """Return one case, over or not. Raises `ProposalError` for an id that is none.

        An operation is a case while it is in doubt, and afterwards if a person had been asked.
        """
        for record in await self.reader.store.load(id):
            if record.tenant == self.tenant and (found := await self._one(record)) is not None:
                return found
        raise ProposalError(f"there is no case {id!r}")

    async def waiting(self) -> list[Record]:
        """Return the records that wait for a person, oldest first."""
        records: list[Record] = []
        after = 0
        for _ in range(PAGES_MAX):
            page = await self.reader.store.listed(
                tenant=self.tenant, of=Selection.WAITING, after=after, limit=PAGE
            )
            records += page.records
            after = page.next
            if not after:
                break
        return records

    async def _one(self, record: Record) -> Standing | None:
        if record.kind is not Kind.OPERATION or record.state in BY_STATE:
            return await self._case(record)
        entries = await self.reader.store.journal(record=record.id, limit=PAGE)
        was_one = any(entry.event == Happened.GAVE_UP for entry in entries)
        return await self._case(record) if was_one else None

    async def _case(self, record: Record) -> Standing | None:
        match record.kind:
            case Kind.OPERATION:
                return await self._standing(await self.reader.operation(record.id))
            case Kind.CASE:
                return await self._of(case_from(record))
            case _:
                return None

    async def _of(self, case: Case) -> Standing:
        if case.why is Why.UNRECORDED:
            return standing_alone(case)
        return await self._standing(await self.reader.operation(case.subject), case)

    async def _standing(self, held: Operation, case: Case | None = None) -> Standing:
        contract = self.reader.contracts[held.contract]
        return standing(held, contract, case=case, words=await self._words(held.ask.input))

    async def _words(self, heard: str) -> str:
        """Return what somebody said, in their own words."""
        records = await self.reader.store.load(heard) if heard else ()
        return "".join(input_of(one).text for one in records if one.kind is Kind.INPUT)
