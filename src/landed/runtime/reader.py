"""Reads records without claiming anything: history, report and status, for every face alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.declared import from_values
from landed.core.errors import ProposalError, StoreError
from landed.core.history import Item, View, has_endings, history, was_told_before
from landed.core.journal import Entry, as_of
from landed.core.operation import Operation
from landed.core.operation_record import from_record
from landed.core.plan import Plan, plan_from
from landed.core.report import Report, report
from landed.core.session import contract_id, contracts_of, kept_contract
from landed.core.store import Store
from landed.core.value import Value, value_of
from landed.runtime.telling import records_of_turn

PAGE = 500
PAGES_MAX = 200


@dataclass(slots=True, eq=False)
class Reader:
    """What there is to read in a store, with the contracts that the records were made under.

    `secrets` are those that the links of its journal were made with, the newest first.
    """

    store: Store
    contracts: dict[str, Contract] = field(default_factory=dict[str, Contract])
    secrets: tuple[bytes, ...] = field(default=(b"",), repr=False)

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

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """Return those of the records that exist, however many are asked for."""
        found: list[Record] = []
        for start in range(0, len(ids), PAGE):
            found += await self.store.load(*ids[start : start + PAGE])
        return tuple(found)

    async def operation(self, id: str) -> Operation:
        """Return an operation. Raises `ProposalError` for an id that is not one."""
        records = await self.store.load(id)
        if not records or records[0].kind is not Kind.OPERATION:
            raise ProposalError(f"there is no operation {id!r}")
        held = from_record(records[0])
        await self.contract(held.contract, of=id)
        return held

    async def operations(self, *ids: str) -> dict[str, Operation]:
        """Return those of these records that are operations, with their contracts learnt."""
        held = {r.id: from_record(r) for r in await self.load(*ids) if _is_operation(r)}
        for operation in held.values():
            await self.contract(operation.contract, of=operation.id)
        return held

    def value(self, operation: Operation, *, replayed: bool = False) -> Value:
        """Return an operation whose contract is at hand as the value its caller matches on."""
        return value_of(operation, self.contracts[operation.contract], replayed=replayed)

    async def history(self, session: str, *, tenant: str, view: View) -> tuple[Item, ...]:
        """Return what a model is shown of a session."""
        return await self.history_of(await self.records(tenant=tenant, session=session), view=view)

    async def history_of(self, records: Sequence[Record], *, view: View) -> tuple[Item, ...]:
        """Return what a model is shown of some records of a session, their contracts learnt."""
        told: dict[str, Sequence[Entry]] = {}
        for record in records:
            if _needs_journal(record):
                told[record.id] = await self.store.journal(record=record.id, limit=PAGE)
        return history(records, told, self.contracts, view=view)

    async def plan(self, id: str, *, tenant: str = "") -> Plan:
        """Return a plan. Raises `ProposalError` for an id that is not one, or of another tenant."""
        records = await self.store.load(id)
        if not records or records[0].kind is not Kind.PLAN or records[0].tenant != tenant:
            raise ProposalError(f"there is no plan {id!r}")
        return plan_from(records[0])

    async def plan_at_end_of(self, plan: Plan, attempt: int) -> Plan:
        """Return a plan as it was when one of its earlier attempts came to its end."""
        (record,) = await self.store.load(plan.id)
        entries = await self.store.journal(record=plan.id, limit=PAGE)
        then = [plan_from(as_of(record, entry)) for entry in entries if entry.body is not None]
        return next((one for one in reversed(then) if one.attempt == attempt), plan)

    async def report(self, turn: str, *, language: str, now: float = 0.0) -> Report:
        """Return what the person is told of a turn. Raises `ProposalError` for an unknown id."""
        records = await self.store.load(turn)
        if not records or records[0].kind not in _TURNS:
            raise ProposalError(f"there is no turn {turn!r}; use the id that `receive` returned")
        first = records[0]

        async def window(after: int) -> list[Record]:
            return await self.records(tenant=first.tenant, session=first.session, after=after)

        every = await records_of_turn(self.store, first, window)
        await self._learn(every)
        return report(turn, every, self.contracts, language=language, now=now)

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
        await self._learn(records)
        return records

    async def _learn(self, records: Iterable[Record]) -> None:
        for record in records:
            for digest in contracts_of(record):
                await self.contract(digest, of=record.id)


# What a turn may be known by: a call or a plan without an input is a turn of its own.
_TURNS = frozenset({Kind.TURN, Kind.OPERATION, Kind.PLAN})


def _is_operation(record: Record) -> bool:
    return record.kind is Kind.OPERATION


def _needs_journal(record: Record) -> bool:
    """Whether more than the record as it is now is needed to tell what a model was told of it."""
    match record.kind:
        case Kind.OPERATION:
            return was_told_before(from_record(record))
        case Kind.PLAN:
            return has_endings(plan_from(record))
        case _:
            return False
