"""What a restore means for what is older than it: nothing of it goes on as if nothing had happened.

Between the backup and the restore anything may have become of these records, and nobody remembers.
So an open operation is in doubt, whatever its state, and its key is spent; a yes that was offered
is void; a plan that waited for one expires, one that ran starts no further step; and what was to
be undone becomes a question. What is settled stays settled: nothing moves it any more, also not in
the time that is lost. This runs first in every lap, so that nothing is decided on what was.
"""

from landed.core.approval import ApprovalState
from landed.core.approving import expire, lapse, lapse_approval
from landed.core.draft import Draft
from landed.core.incarnation import RESTORED
from landed.core.operation import Happened, Operation
from landed.core.plan import PlanState
from landed.core.undo import Release, ReleaseEvent, ReleaseState

RESTORE = "restore"  # Who let it expire or lapse.
IN_DOUBT = f"{RESTORED}: it may have been sent since, and nobody remembers"
OWED = f"{RESTORED}, and it may have been taken back since"

_MAY_BE_UNDONE = frozenset(
    {
        ReleaseState.OWED_IF_LANDED,
        ReleaseState.OWED,
        ReleaseState.DUE,
        ReleaseState.ASKED,
        ReleaseState.QUESTIONED,
    }
)


def restore(draft: Draft) -> None:
    """Take what is older than the last restore for what it is now; without one, do nothing."""
    if not draft.scope.incarnation.horizon:
        return
    for operation in list(draft.operations.values()):
        if operation.open and draft.is_mine(operation.worker):
            _doubt(draft, operation)
    _void(draft)
    for owed in list(draft.releases.values()):
        if not owed.open or draft.is_mine(owed.worker):
            _ask_again(draft, owed)


def _void(draft: Draft) -> None:
    """Let each yes that was offered lapse, and expire what waited for one."""
    for plan in list(draft.plans.values()):
        if plan.state is PlanState.PROPOSED and draft.is_older(plan.id):
            expire(draft, plan, by=RESTORE, why=RESTORED)
    for approval in list(draft.approvals.values()):
        if approval.state is ApprovalState.OPEN and draft.is_untouched(approval.id):
            lapse_approval(draft, approval, by=RESTORE, why=RESTORED)
            lapse(draft, approval.question)


def _doubt(draft: Draft, operation: Operation) -> None:
    """Count one more send, that nobody remembers: it left at any time between then and now."""
    horizon = draft.scope.incarnation.horizon
    if operation.restored == horizon or not draft.is_older(operation.id):
        return
    draft.move(
        operation,
        Happened.RESTORED,
        IN_DOUBT,
        restored=horizon,
        closing=True,
        tries=operation.tries + 1,
        first_sent_at=operation.first_sent_at or operation.made_at,
        last_sent_at=draft.now,
        looks=0,
        absences=0,
        looked="",
        blocked_by="",
    )


def _ask_again(draft: Draft, owed: Release) -> None:
    """Nothing is undone on its own: once it is known that it landed, the person is asked."""
    if owed.state not in _MAY_BE_UNDONE or not draft.is_untouched(owed.id):
        return
    lapse(draft, owed.question)
    where: dict[str, object] = {"plan": "", "step": 0, "left_out": True, "question": ""}
    if not owed.open:
        where["worker"] = draft.scope.worker
    draft.move_release(
        owed, ReleaseEvent.HANDED_ON, why=OWED, price_cents=None, agreed=False, **where
    )
