"""The refunds in two phases in `landed demo`: a few lines each, wrong designs beside right ones."""

from dataclasses import replace

from landed.runtime.opened import Settings
from landed.testing.designs import TIMEOUT_IS_NO
from landed.testing.refunds.designs import FINGERPRINT_OF_NOW, KEY_ON_RETRY, TIME_IS_ADVICE
from landed.testing.refunds.places import COMMIT, bank
from landed.testing.refunds.scripts import (
    agreed,
    agreed_to_some,
    conflict,
    gives_up,
    late,
    left,
    meanwhile,
    moved,
    planned_again,
    quoted,
)
from landed.testing.refunds.stage import RefundScenario
from landed.testing.worlds.faults import Fault
from landed.tools.dry_run import MEANS, Layout, Meaning

APPLIED = Fault(path=COMMIT, kind="lose_reply", hang=True)
NEVER_CAME = Fault(path=COMMIT, kind="drop", hang=True)
CONFLICT_IS_NO = Layout(means={**MEANS, 409: Meaning.REFUSED})
PATIENT = Settings(answer_within_s=3_600.0)  # A yes may come after the service's plan is over.
SOME = "RF1 4412 200.00 by PL1"
TWICE = (SOME, "RF2 4412 200.00 by PL2")

REFUND_PLANNED = RefundScenario(
    name="refund-planned",
    line="Planned, shown, agreed to, committed: the very plan that was shown, once.",
    script=agreed,
    place=bank(),
    holds=("RF1 4412 480.00 by PL1",),
    says=("efunded 48000 cents of 4412 (RF1)",),
)
REFUND_CONFLICT = RefundScenario(
    name="refund-conflict",
    line="200.00 are refunded meanwhile: a conflict names it, and 280.00 are planned anew.",
    script=conflict,
    place=bank(),
    holds=("RF1 4412 200.00", "RF2 4412 280.00 by PL2"),
    says=("efunded 28000 cents of 4412 (RF2)",),
)
REFUND_COMMIT_TIMEOUT = RefundScenario(
    name="refund-commit-timeout",
    line="The commit is applied and its answer lost: the plan is read by its id, one refund.",
    script=agreed_to_some,
    place=bank(APPLIED),
    holds=(SOME,),
    says=("efunded 20000 cents of 4412 (RF1)",),
)
REFUND_MEANWHILE = RefundScenario(
    name="refund-meanwhile",
    line="Somebody makes the very refund meanwhile: a conflict, and no second one.",
    script=meanwhile,
    place=bank(),
    holds=("RF1 4412 200.00",),
    says=("refunded_cents: 0 ▸ 20000",),
)
REFUND_PLAN_EXPIRED = RefundScenario(
    name="refund-plan-expired",
    line="The yes comes after the plan's time: nothing is sent, and a new plan is shown.",
    script=late,
    place=bank(),
    settings=PATIENT,
    holds=("RF1 4412 200.00 by PL2",),
    says=("efunded 20000 cents of 4412 (RF1)",),
)
REFUNDS: tuple[RefundScenario, ...] = (
    REFUND_PLANNED,
    REFUND_CONFLICT,
    replace(
        REFUND_CONFLICT,
        name="refund-conflict-bare",
        line="WRONG: the conflict names nothing, it is tried twice more: 'the refund failed'.",
        script=gives_up,
        place=bank(slips=("bare",), layout=CONFLICT_IS_NO),
        wrong="F3-04",
        holds=("RF1 4412 200.00",),
        says=("The refund failed",),
    ),
    REFUND_MEANWHILE,
    replace(
        REFUND_MEANWHILE,
        name="refund-fingerprint-naive",
        line="WRONG: the fingerprint is made at the commit: an old plan in a new world, two.",
        place=bank(slips=("fingerprint",)),
        design=FINGERPRINT_OF_NOW,
        wrong="F3-01",
        holds=("RF1 4412 200.00", "RF2 4412 200.00 by PL1"),
        says=(),
    ),
    REFUND_COMMIT_TIMEOUT,
    replace(
        REFUND_COMMIT_TIMEOUT,
        name="refund-commit-dropped",
        line="The commit never came there: the same key again, by the same path; one refund.",
        place=bank(NEVER_CAME),
    ),
    replace(
        REFUND_COMMIT_TIMEOUT,
        name="refund-commit-rekeyed",
        line="WRONG: the retry has a key of its own, and nobody reads the plan: two refunds.",
        place=bank(APPLIED, slips=("once",)),
        design=KEY_ON_RETRY,
        wrong="F3-02",
        holds=("RF1 4412 200.00", "RF2 4412 200.00 by PL1"),
        reconciled=False,
        says=(),
    ),
    replace(
        REFUND_COMMIT_TIMEOUT,
        name="refund-commit-replanned",
        line="WRONG: silence is taken for a failure, and it is planned anew: two refunds.",
        script=planned_again,
        place=bank(APPLIED),
        design=TIMEOUT_IS_NO,
        wrong="F3-03",
        holds=TWICE,
        reconciled=False,
        says=(),
    ),
    REFUND_PLAN_EXPIRED,
    replace(
        REFUND_PLAN_EXPIRED,
        name="refund-expiry-naive",
        line="WRONG: the plan's time is advice, there and here: what is over is applied.",
        place=bank(slips=("expiry",)),
        design=TIME_IS_ADVICE,
        wrong="F3-06",
        holds=(SOME,),
    ),
    RefundScenario(
        name="refund-plan-stale",
        line="The agent writes to the order before the yes: stale, nothing sent, planned anew.",
        script=moved,
        place=bank(),
        holds=("RF1 4412 200.00 by PL2",),
        says=("efunded 20000 cents of 4412 (RF1)",),
    ),
    RefundScenario(
        name="refund-plan-declined",
        line="The reviewer says no; a later turn has no token to quote, and is shown a plan.",
        script=left,
        place=bank(),
    ),
    RefundScenario(
        name="refund-token-quoted",
        line="WRONG: the token stands in the transcript: a later turn commits what was declined.",
        script=quoted,
        place=bank(bare=True),
        wrong="F3-05",
        holds=(SOME,),
    ),
    RefundScenario(
        name="refund-plan-amended",
        line="Fresh inputs beside the plan: the service refuses them all, nothing runs.",
        script=agreed_to_some,
        place=bank(cents=40_000),
        says=("nothing was done",),
    ),
    RefundScenario(
        name="refund-inputs-naive",
        line="WRONG: a commit takes fresh inputs: 200.00 were agreed to, and 400.00 run.",
        script=agreed_to_some,
        place=bank(slips=("inputs",), cents=40_000),
        wrong="F3-07",
        holds=("RF1 4412 400.00 by PL1",),
        reconciled=False,
    ),
)
REFUNDS_BY_NAME = {scenario.name: scenario for scenario in REFUNDS}
