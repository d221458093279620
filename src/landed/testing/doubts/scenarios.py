"""The scenarios of doubt in `landed demo`: a few lines each, wrong designs beside right ones."""

from dataclasses import replace

from landed.runtime.opened import Settings
from landed.testing.designs import KEY_PER_ATTEMPT, LOOKUP_ONLY, OPERATIONS_LOST, TIMEOUT_IS_NO
from landed.testing.doubts.around import LooksAfterClosing
from landed.testing.doubts.designs import (
    MODEL_KEY,
    NO_RECONCILER,
    NOTHING_BLOCKS,
    PAYLOAD_CHANGES,
    RECOVERED_IS_WELL,
    RETENTION_IGNORED,
    RETURN_IS_DONE,
)
from landed.testing.doubts.given import LOST, bank, no_lookup, on_refund, wallet
from landed.testing.doubts.places import Notes
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.doubts.scripts import (
    DRAFT,
    EDITED,
    asked_again,
    change_the_amount,
    let_it_go,
    reconciled_at_once,
    refund,
    refund_stubbornly,
    refund_three,
    ruled,
    swept,
    transfer_stubbornly,
    write,
)
from landed.testing.worlds.faults import Fault

DAY_S, HOUR_S = 86_400.0, 3_600.0
REFUNDED, AGAIN = "RF1 A17 40.00", "RF2 A17 40.00"
SAYS_REFUNDED = ("efunded 4000 cents of A17 (RF1)",)
SAYS_NOT = ("A17 was not refunded",)
MAY_HAVE = ("I may have refunded 4000 cents of A17",)


REFUND_TIMEOUT = DoubtScenario(
    name="refund-timeout",
    line="The refund is made and its answer lost: looked up by its key, one refund.",
    script=refund_stubbornly,
    place=bank(*LOST),
    holds=(REFUNDED,),
    says=SAYS_REFUNDED,
)
REFUND_TIMEOUTS: tuple[DoubtScenario, ...] = (
    REFUND_TIMEOUT,
    replace(
        REFUND_TIMEOUT,
        name="refund-timeout-naive",
        line="WRONG: a time-out is taken for a no, and the call made again: two refunds.",
        design=TIMEOUT_IS_NO,
        wrong="F4-01",
        holds=(REFUNDED, AGAIN),
        reconciled=False,
        says=(),
    ),
    replace(
        REFUND_TIMEOUT,
        name="refund-key-per-attempt",
        line="WRONG: each send has a key of its own, which compares with nothing: two refunds.",
        design=KEY_PER_ATTEMPT,
        wrong="F4-02",
        holds=(REFUNDED, AGAIN),
        reconciled=False,
        says=(),
    ),
    replace(
        REFUND_TIMEOUT,
        name="refund-asked-again",
        line="The model hears that nobody knows and calls again: it hears of the first call.",
        script=asked_again,
        place=bank(*LOST, *no_lookup(5)),
    ),
    replace(
        REFUND_TIMEOUT,
        name="refund-model-key",
        line="WRONG: the model names the key, and its second try anew: two refunds, both agreed.",
        script=asked_again,
        place=bank(*LOST, *no_lookup(5)),
        design=MODEL_KEY,
        wrong="F4-03",
        holds=(REFUNDED, AGAIN),
        says=(),
    ),
    replace(
        REFUND_TIMEOUT,
        name="refund-restart",
        line="Killed before the answer was written down: the next process looks it up.",
        script=refund,
        kill=("after:send:refund_order",),
    ),
    replace(
        REFUND_TIMEOUT,
        name="refund-in-context",
        line="WRONG: what was sent stood in the context window, lost by the restart: two refunds.",
        script=refund,
        kill=("after:send:refund_order",),
        design=OPERATIONS_LOST,
        wrong="F4-04",
        holds=(REFUNDED, AGAIN),
        reconciled=False,
        says=(),
    ),
)

LAGGING_READ = DoubtScenario(
    name="lagging-read",
    line="A replica that is behind says 'nothing there': no no, and half a minute later a yes.",
    script=refund_stubbornly,
    place=bank(
        *LOST,
        reads="/replica",
        lag_s=30.0,
        can_close=False,
        promises={"compares_payload": False, "settlement_lag_s": 30.0},
    ),
    holds=(REFUNDED,),
    says=SAYS_REFUNDED,
)
LAGGING_READS: tuple[DoubtScenario, ...] = (
    LAGGING_READ,
    replace(
        LAGGING_READ,
        name="lagging-read-naive",
        line="WRONG: the replica's 'nothing there' is taken for a no: two refunds.",
        design=LOOKUP_ONLY,
        wrong="F4-07",
        holds=(REFUNDED, AGAIN),
        reconciled=False,
        says=(),
    ),
    DoubtScenario(
        name="lagging-read-positions",
        line="Three refunds read at positions: yes; no, past the position; too early to say.",
        script=refund_three,
        place=bank(
            on_refund("lose_reply", nth=3),
            orders={"A17": 10_000, "B20": 10_000, "C31": 10_000},
            reads="/replica",
            lag_s=30.0,
            drops=1,
            can_close=False,
            promises={
                "read_back": True,
                "compares_payload": False,
                "settlement_lag_s": 120.0,
            },
        ),
        holds=("RF1 A17 10.00", "RF2 C31 10.00"),
        says=("efunded 1000 cents of A17", "efunded 1000 cents of C31", "B20 was not refunded"),
    ),
)

READS_BACK = {"read_back": True, "settlement_lag_s": 60.0}
SILENT_NO_OP = DoubtScenario(
    name="silent-no-op",
    line="Answered 201 and never made: read back past the answer's position, it is a no.",
    script=refund,
    place=bank(drops=1, promises=READS_BACK),
    says=SAYS_NOT,
)
SILENT_NO_OPS: tuple[DoubtScenario, ...] = (
    SILENT_NO_OP,
    replace(
        SILENT_NO_OP,
        name="silent-no-op-unknown",
        line="The same without positions or keys: unknown, and after its time a person's case.",
        place=bank(drops=1, keyed=False, positions=False, promises=READS_BACK),
        cases=("C1 refund_order undecided",),
        reconciled=False,
        says=MAY_HAVE,
    ),
    replace(
        SILENT_NO_OP,
        name="silent-no-op-resent",
        line="The same with a key: unknown, and sent again under that key, which makes it once.",
        place=bank(drops=1, positions=False, promises=READS_BACK),
        holds=(REFUNDED,),
        says=SAYS_REFUNDED,
    ),
    replace(
        SILENT_NO_OP,
        name="silent-no-op-naive",
        line="WRONG: what a call returns is taken for what happened: 'refunded', and nothing is.",
        design=RETURN_IS_DONE,
        wrong="F4-10",
        reconciled=False,
        says=("efunded 4000 cents of A17 (RF9001)",),
    ),
)

KEY_RETENTION = DoubtScenario(
    name="key-retention",
    line="Found out 25 h later, keys are kept for 24: nothing is sent, the list of refunds tells.",
    script=swept,
    place=bank(
        *LOST,
        retention_s=DAY_S,
        can_close=False,
        promises={"escalate_after_s": 3 * DAY_S},
    ),
    settings=Settings(send_within_s=2 * DAY_S),
    kill=("after:send:refund_order",),
    away_s=25 * HOUR_S,
    holds=(REFUNDED,),
    says=SAYS_REFUNDED,
)
KEY_RETENTIONS: tuple[DoubtScenario, ...] = (
    KEY_RETENTION,
    replace(
        KEY_RETENTION,
        name="key-retention-naive",
        line="WRONG: the key that the service has forgotten is sent again: two refunds.",
        design=RETENTION_IGNORED,
        wrong="F4-08",
        holds=(REFUNDED, AGAIN),
        reconciled=False,
        says=(),
    ),
)

MORE_PAID = {"A17": 30_000}
CHANGED_AMOUNT = DoubtScenario(
    name="changed-amount",
    line="120.00 asked while 100.00 is unknown: blocked by it; once that is known, 20.00 more.",
    script=change_the_amount,
    place=bank(*LOST, *no_lookup(6), orders=MORE_PAID),
    holds=("RF1 A17 100.00", "RF2 A17 20.00"),
    says=("efunded 2000 cents of A17 (RF2)",),
)
CHANGED_AMOUNTS: tuple[DoubtScenario, ...] = (
    CHANGED_AMOUNT,
    replace(
        CHANGED_AMOUNT,
        name="changed-amount-naive",
        line="WRONG: the new amount is another call, and goes out: two refunds, both 'correct'.",
        design=NOTHING_BLOCKS,
        wrong="F4-11",
        holds=("RF1 A17 100.00", "RF2 A17 120.00"),
        says=("efunded 12000 cents of A17 (RF2)",),
    ),
    replace(
        CHANGED_AMOUNT,
        name="changed-amount-dropped",
        line="The same where the first request got lost: what was agreed to goes again.",
        place=bank(on_refund("drop"), *no_lookup(6), orders=MORE_PAID),
    ),
    replace(
        CHANGED_AMOUNT,
        name="changed-amount-mutable",
        line="WRONG: the payload can be changed: 120.00 is paid, and the record says 100.00.",
        place=bank(on_refund("drop"), *no_lookup(6), orders=MORE_PAID),
        design=PAYLOAD_CHANGES,
        wrong="F4-13",
        holds=("RF1 A17 120.00",),
        reconciled=False,
        says=(),
    ),
)

ON_CHAIN = (Fault(path="/transactions", kind="lose_reply"),)
WALLET = DoubtScenario(
    name="wallet",
    line="A transfer whose answer is lost: looked up by its digest until a block has it, one.",
    script=transfer_stubbornly,
    place=wallet(*ON_CHAIN),
    service="chain",
    holds=("T1 ana > bob 10",),
    says=("10 went from ana to bob",),
)
WALLETS: tuple[DoubtScenario, ...] = (
    WALLET,
    replace(
        WALLET,
        name="wallet-forgotten",
        line="The same, and the pool forgot it: the same bytes are broadcast again, one transfer.",
        place=wallet(*ON_CHAIN, forgets=1),
    ),
    replace(
        WALLET,
        name="wallet-naive",
        line="WRONG: signed again with the next number because no answer came: two transfers.",
        design=TIMEOUT_IS_NO,
        wrong="F4-12",
        holds=("T1 ana > bob 10", "T2 ana > bob 10"),
        reconciled=False,
    ),
)

FILE_WRITE = DoubtScenario(
    name="file-write",
    line="An error after the bytes landed: confirmed by a look, and ana's changes to it stay.",
    script=write,
    place=lambda world: Notes(world=world, failures=["the disk said EIO after the rename"]),
    service="folder",
    holds=(f"notes/plan.txt: {EDITED}",),
    says=("rote notes/plan.txt",),
)
FILE_WRITES: tuple[DoubtScenario, ...] = (
    FILE_WRITE,
    replace(
        FILE_WRITE,
        name="file-write-naive",
        line="WRONG: an error is taken for a no and it is written again, over ana's changes.",
        design=TIMEOUT_IS_NO,
        wrong="F4-01",
        holds=(f"notes/plan.txt: {DRAFT}",),
        reconciled=False,
    ),
)

SAYS_YES = (
    on_refund("delay_request", seconds=40.0),
    Fault(path="/keys/*/close", nth=None, kind="accept_only", body='{"found": false}'),
)
CLOSE_IS_NOT_PROOF = DoubtScenario(
    name="close-is-not-proof",
    line="A service that says yes to closing keys it never saw: looked at until the refund is in.",
    script=let_it_go,
    place=bank(*SAYS_YES, around=LooksAfterClosing),
    holds=(REFUNDED,),
    says=SAYS_REFUNDED,
)
CLOSES: tuple[DoubtScenario, ...] = (
    CLOSE_IS_NOT_PROOF,
    replace(
        CLOSE_IS_NOT_PROOF,
        name="close-is-not-proof-naive",
        line="WRONG: its yes is believed: 'not refunded', and 40 s later a refund nobody knows of.",
        place=bank(*SAYS_YES),
        wrong="believes what the service says of a key it never saw",
        reconciled=False,
        says=SAYS_NOT,
    ),
)

UNEXPLAINED = DoubtScenario(
    name="unexplained-recovery",
    line="Three looks that had to see it do not, the next one does: confirmed, and to be signed.",
    script=refund,
    place=bank(
        *LOST, reads="/replica", lag_s=60.0, can_close=False, promises={"compares_payload": False}
    ),
    holds=(REFUNDED,),
    cases=("C1 refund_order unexplained",),
    says=SAYS_REFUNDED,
)
UNEXPLAINEDS: tuple[DoubtScenario, ...] = (
    UNEXPLAINED,
    replace(
        UNEXPLAINED,
        name="unexplained-recovery-naive",
        line="WRONG: it is there now, so all is well: nobody hears that the service was not.",
        design=RECOVERED_IS_WELL,
        wrong="takes a recovery that nothing explains for a success",
        cases=(),
    ),
)

SILENT = bank(*LOST, *no_lookup(None), can_close=False, promises={"compares_payload": False})
UNDECIDED = DoubtScenario(
    name="undecided",
    line="Nobody answers until the time is over: a case; a person looks it up, and rules.",
    script=ruled,
    place=SILENT,
    holds=(REFUNDED,),
    says=SAYS_REFUNDED,
)
UNDECIDEDS: tuple[DoubtScenario, ...] = (
    UNDECIDED,
    replace(
        UNDECIDED,
        name="undecided-two-states",
        line="WRONG: a call has succeeded or failed, so this one failed: it did not.",
        design=TIMEOUT_IS_NO,
        wrong="F4-05",
        reconciled=False,
        says=SAYS_NOT,
    ),
    replace(
        UNDECIDED,
        name="undecided-nobody",
        line="WRONG: nobody is there to find out: unknown, for ever, and before nobody's eyes.",
        design=NO_RECONCILER,
        wrong="F4-06",
        reconciled=False,
        says=MAY_HAVE,
    ),
)

RECONCILER_TWICE = DoubtScenario(
    name="reconciler-twice",
    line="Killed; two processes start at once and both want to know: one question, one answer.",
    script=reconciled_at_once,
    place=bank(*LOST),
    kill=("after:send:refund_order",),
    together=2,
    holds=(REFUNDED,),
    says=SAYS_REFUNDED,
)
RECONCILERS: tuple[DoubtScenario, ...] = (
    RECONCILER_TWICE,
    replace(
        RECONCILER_TWICE,
        name="reconciler-twice-naive",
        line="WRONG: nothing is claimed, and each makes good what it finds missing: three refunds.",
        place=bank(*LOST, orders=MORE_PAID),
        design=OPERATIONS_LOST,
        wrong="each process settles the doubt for itself",
        holds=(REFUNDED, AGAIN, "RF3 A17 40.00"),
        reconciled=False,
        says=(),
    ),
)

DOUBTS: tuple[DoubtScenario, ...] = (
    *REFUND_TIMEOUTS,
    *LAGGING_READS,
    *SILENT_NO_OPS,
    *KEY_RETENTIONS,
    *CHANGED_AMOUNTS,
    *WALLETS,
    *FILE_WRITES,
    *CLOSES,
    *UNEXPLAINEDS,
    *UNDECIDEDS,
    *RECONCILERS,
)
DOUBTS_BY_NAME = {scenario.name: scenario for scenario in DOUBTS}
