"""Reads records without claiming anything: history, report and status, for every face alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.declared import from_values
from landed.core.errors import ProposalError, StoreError
from landed.core.history import Item, View, history, was_told_before
from landed.core.journal import Entry
from landed.core.operation import Operation, from_record
from landed.core.report import Report, report
from landed.core.session import contract_id, contracts_of, kept_contract
from landed.core.store import Store
from landed.core.value import Value, value_of

PAGE = 500
PAGES_MAX = 200


@dataclass(slots=True, eq=False)
class Reader:
    """What there is to read in a store, with the contracts that the records were made under."""

    store: Store
    contracts: dict[str, Contract] = field(default_factory=dict[str, Contract])

    async def contract(self, digest: str, *, of: str) -> Contract:
        """Return a contract that was seen, by its digest; `of` is the record that names it."""
        if digest not in self.contracts:
            records = await self.store.load(contract_id(digest))
            if not records:
                raise StoreError(
                    f"the contract that {of} was made under is not in the store; restore the"
                    " store from a whole backup"
                )
            tool, values = kept_contract(records[0])
            self.contracts[digest] = from_values(values, tool=tool)
        return self.contracts[digest]

    async def operation(self, id: str) -> Operation:
        """Return an operation. Raises `ProposalError` for an id that is not one."""
        records = await self.store.load(id)
        if not records or records[0].kind is not Kind.OPERATION:
            raise ProposalError(f"there is no operation {id!r}")
        held = from_record(records[0])
        await self.contract(held.contract, of=id)
        return held

    def value(self, operation: Operation, *, replayed: bool = False) -> Value:
        """Return an operation whose contract is at hand as the value its caller matches on."""
        return value_of(operation, self.contracts[operation.contract], replayed=replayed)

    async def history(self, session: str, *, tenant: str, view: View) -> tuple[Item, ...]:
        """Return what a model is shown of a session."""
        records = await self.records(tenant=tenant, session=session)
        told: dict[str, Sequence[Entry]] = {}
        for record in records:
            if record.kind is Kind.OPERATION and was_told_before(from_record(record)):
                told[record.id] = await self.store.journal(record=record.id, limit=PAGE)
        return history(records, told, self.contracts, view=view)

    async def report(self, turn: str, *, language: str) -> Report:
        """Return what the person is told of a turn. Raises `ProposalError` for an unknown id."""
        records = await self.store.load(turn)
        if not records or records[0].kind not in (Kind.TURN, Kind.OPERATION):
            raise ProposalError(f"there is no turn {turn!r}; use the id that `receive` returned")
        first = records[0]
        every = await self.records(tenant=first.tenant, session=first.session)
        return report(turn, every, self.contracts, language=language)

    async def records(self, *, tenant: str, session: str, after: int = 0) -> list[Record]:
        """Return a session's records made after a journal position, with their contracts learnt."""
        records: list[Record] = []
        for _ in range(PAGES_MAX):
            page = await self.store.session_records(
                tenant=tenant, session=session, after=after, limit=PAGE
            )
            records += page
            if len(page) < PAGE:
                break
            after = page[-1].made
        for record in records:
            for digest in contracts_of(record):
                await self.contract(digest, of=record.id)
        return records
