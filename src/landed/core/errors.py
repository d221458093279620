"""The errors `landed` raises, one type per fault, so that a caller knows whose turn it is.

    LandedError
    ├── ProposalError      the model's (or caller's) proposal cannot be carried out as it is
    │   ├── UsedBeforeError   its call id was used before, for something else
    │   └── ForbiddenError    whoever asks is not allowed it
    ├── ContractError      whoever registered the tool
    ├── ConflictError      the world moved since the preview
    ├── ApprovalError      a yes or a no that cannot be taken
    ├── BusyError          load: too much of a tenant is in hand in this process
    ├── StoreError         disk, connection, schema
    │   ├── StaleWriteError   another writer moved the record, or holds the name
    │   ├── LeaseLostError    another worker took over the claim
    │   ├── NewerSchemaError  a newer `landed` has taken over the store
    │   └── RestoredError     the store went back to an earlier time under this process
    ├── IllegalEventError  our own bug: an event that the state table does not allow
    └── WrongLoopError     the runtime was used from another event loop

    ToolError              raised by the code of a tool, never by `landed`
    ├── RefusedError       the service said no before any effect
    └── NotSentError       nothing left this machine

Time-outs, refusals and doubt are values, never exceptions (see `landed.core.value`). The shape of
the tree, with the evidence in attributes and the sentence in `__str__`, follows httpx.
"""

RETRY_AFTER_S = 1.0


class LandedError(Exception):
    """Base of every error that `landed` raises itself."""


class ProposalError(LandedError):
    """What was proposed cannot be carried out; the text says what to change.

    Nothing was recorded and nothing was sent.
    """


class UsedBeforeError(ProposalError):
    """A call id that was used before, for something else; give the new call one of its own."""


class ForbiddenError(ProposalError):
    """Whoever asks is not allowed what a step needs, or nobody could say that they are."""


class ContractError(LandedError):
    """A tool's contract is missing, contradicts itself, or does not fit its function."""


class ConflictError(LandedError):
    """The world moved since the preview; `changed` names the facts that did."""

    def __init__(self, message: str, *, changed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.changed = changed


class ApprovalError(LandedError):
    """A yes or a no that was not taken; nothing was done and nothing was used up.

    `problem` is what whoever presented it may know: `absent` for all that is not theirs, else
    tampered, used, declined, expired or over. `again` is the plan that was previewed anew in place
    of one whose yes came too late, "" where there is none.
    """

    def __init__(self, message: str, *, problem: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.again = ""


class BusyError(LandedError):
    """Too much of `tenant` is in hand in this process: calls that wait, or what is open.

    Nothing was recorded and nothing was sent. Try the same call again after `retry_after_s`
    seconds, or in another process; other tenants are not held up. `most` is the bound.
    """

    def __init__(self, *, tenant: str, most: int) -> None:
        super().__init__(
            f"{most} calls or operations of tenant {tenant!r} are in hand here already; nothing was"
            f" recorded: try again in {RETRY_AFTER_S:g} s, or elsewhere"
        )
        self.tenant = tenant
        self.most = most
        self.retry_after_s = RETRY_AFTER_S


class StoreError(LandedError):
    """The store cannot do what was asked; the text says why and what to do.

    Nothing of the unit was written.
    """


class StaleWriteError(StoreError):
    """A unit was refused because something moved since it was decided.

    Either a record had another version (`record`, `expected`, `found`), or a name was taken
    already (`name`, `holder`). Read again and decide again; nothing was written.
    """

    def __init__(
        self,
        *,
        record: str = "",
        expected: int = 0,
        found: int = 0,
        name: str = "",
        holder: str = "",
    ) -> None:
        if name:
            text = f"the name {name} is held by {holder or 'nobody'}; read it and decide again"
        else:
            text = (
                f"record {record} is at version {found}, not {expected}; read it and decide again"
            )
        super().__init__(text)
        self.record = record
        self.expected = expected
        self.found = found
        self.name = name
        self.holder = holder


class LeaseLostError(StoreError):
    """Another worker claimed `record` with a later epoch; this worker must leave it alone.

    Of a worker's registration, which has no epoch, `held` and `found` are 0.
    """

    def __init__(self, *, record: str, held: int, found: int) -> None:
        super().__init__(
            f"the claim on {record} was lost: it is held under epoch {found}, not {held}; "
            "the worker that holds it goes on with it"
            if found
            else f"the claim on {record} was lost; another worker goes on with what it held"
        )
        self.record = record
        self.held = held
        self.found = found


class NewerSchemaError(StoreError):
    """A newer `landed` changed the store so that this one may not write it; upgrade this one.

    Nothing was changed. A worker that meets it stops: whoever runs the newer one goes on with what
    this one had begun, as with anything that a process leaves that ends.
    """


class RestoredError(StoreError):
    """The store went back to an earlier time while this process worked on it.

    What the process has in memory is of another time, so it does nothing more. The restore is
    written down: open the runtime again, and what was open is found out before anything is sent.
    """


class IllegalEventError(LandedError):
    """An event that the state table does not allow: a bug in `landed`, please report it."""


class WrongLoopError(LandedError):
    """A runtime belongs to the event loop it was entered on; this call came from another one."""


class ToolError(Exception):
    """Base of what a tool's own code raises to say what it *knows* about the effect."""


class RefusedError(ToolError):
    """Raise it in a tool when the service said no *before any effect*.

    The operation becomes `failed`: definitely no effect. Anything else that a tool with an effect
    raises leaves the operation in doubt.
    """


class NotSentError(ToolError):
    """Raise it in a tool when nothing left this machine, so that sending again is harmless."""
