"""What waits for a person, read from the store: cases, plans and questions; nothing is claimed."""

from dataclasses import dataclass

from landed.core.case import Case, Standing, Why, case_from, standing, standing_alone
from landed.core.changes import Kind, Record
from landed.core.errors import ProposalError
from landed.core.question import Question, question_from
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
        """Return one case, open or not. Raises `ProposalError` for an id that is none."""
        for record in await self.reader.store.load(id):
            known = record.kind in (Kind.CASE, Kind.OPERATION) and record.tenant == self.tenant
            if known and (case := await self._case(record)) is not None:
                return case
        raise ProposalError(f"there is no case {id!r}")

    async def waiting(self) -> list[Record]:
        """Return the records that wait for a person, oldest first."""
        records: list[Record] = []
        after = 0
        for _ in range(PAGES_MAX):
            page = await self.reader.store.waiting(tenant=self.tenant, after=after, limit=PAGE)
            records += page
            if len(page) < PAGE:
                break
            after = page[-1].made
        return records

    async def _case(self, record: Record) -> Standing | None:
        match record.kind:
            case Kind.OPERATION:
                return await self._standing(record.id, Why.UNDECIDED)
            case Kind.CASE:
                return await self._of(case_from(record))
            case _:
                return None

    async def _of(self, case: Case) -> Standing:
        if case.why is Why.UNRECORDED:
            return standing_alone(case)
        return await self._standing(case.subject, case.why, case=case.id)

    async def _standing(self, operation: str, why: Why, case: str = "") -> Standing:
        held = await self.reader.operation(operation)
        return standing(held, self.reader.contracts[held.contract], why=why, case=case)
