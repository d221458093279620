"""The names under which spans, attributes and metrics appear, each with what it says.

Where OpenTelemetry's conventions for generative AI have a name, it is theirs, spelled out here:
they are still in development, and a package of constants would move them under us. The rest is
ours, under `landed.`. The guide's tables are held to these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

OPERATION_NAME = "gen_ai.operation.name"
TOOL = "gen_ai.tool.name"
CALL_ID = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
CONVERSATION = "gen_ai.conversation.id"
ERROR = "error.type"
OPERATION = "landed.operation"
TENANT = "landed.tenant"
ATTEMPT = "landed.attempt"
PLAN = "landed.plan"
UNDOES = "landed.undoes"
RETRIES = "landed.retries"
WORKER = "landed.worker"
EPOCH = "landed.epoch"
OUTCOME = "landed.outcome"
CALL = "landed.call"
KIND = "landed.kind"
STATE = "landed.state"
CONFLICT = "landed.conflict"

EXECUTE_TOOL = "execute_tool"

SPANS: Mapping[str, str] = {
    "execute_tool {tool}": "one send of an operation, the first or the same key again",
    "lookup {tool}": "one question: did it land?",
    "close {tool}": "the same, and the service refuses the key from now on",
    "read-back {tool}": "one question: is the result visible where it matters?",
}

SPAN_ATTRIBUTES: Mapping[str, str] = {
    OPERATION_NAME: "`execute_tool`, on sends",
    TOOL: "the tool",
    CALL_ID: "the model's id of the call, where it had one",
    ARGUMENTS: "the arguments as JSON; only with `arguments=`",
    CONVERSATION: "the session",
    OPERATION: "the operation",
    TENANT: "its tenant",
    ATTEMPT: "the number of the send, from 1; of a question, of the send that it asks about",
    PLAN: "the plan it is a step of, if any",
    UNDOES: "the operation it takes back, if any",
    RETRIES: "the operation it tries again, if any",
    WORKER: "the worker that made the call",
    EPOCH: "the claim it was made under",
    OUTCOME: "what came back: `acknowledged`, `refused`, `not_sent`, `answer_lost`; or `found`,"
    " `absent`, `not_yet`, `no_answer`",
    ERROR: "the error, where a call broke that should have caught it",
}


class Instrument(Enum):
    """What kind of metric it is."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `bounds` are the upper bounds of a histogram's buckets."""

    name: str
    instrument: Instrument
    unit: str
    says: str
    attributes: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


_C, _H, _G = Instrument.COUNTER, Instrument.HISTOGRAM, Instrument.GAUGE
_QUICK_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG_S = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0)
_UNITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)

OPERATIONS = Metric(
    name="landed.operations",
    instrument=_C,
    unit="{operation}",
    says="operations that reached a state; those in `resent` are the resends",
    attributes=(TOOL, STATE),
)
CALLS = Metric(
    name="landed.call.duration",
    instrument=_H,
    unit="s",
    says="sends and questions, from leaving to coming back",
    attributes=(TOOL, CALL, OUTCOME),
    bounds=_QUICK_S,
)
DOUBTS = Metric(
    name="landed.doubt.duration",
    instrument=_H,
    unit="s",
    says="from the first send to what settled it, of those that had been in doubt",
    attributes=(TOOL, STATE),
    bounds=_LONG_S,
)
CASES = Metric(
    name="landed.cases",
    instrument=_C,
    unit="{case}",
    says="cases that opened",
)
RENEWALS = Metric(
    name="landed.lease.renewals",
    instrument=_C,
    unit="{renewal}",
    says="renewals of this worker's lease",
)
LOSSES = Metric(
    name="landed.lease.losses",
    instrument=_C,
    unit="{loss}",
    says="this worker was taken for dead, and stopped",
)
CONFLICTS = Metric(
    name="landed.conflicts",
    instrument=_C,
    unit="{conflict}",
    says="laps decided again: another was quicker (`stale_write`) or took it over (`claim_lost`)",
    attributes=(CONFLICT,),
)
UNITS = Metric(
    name="landed.commit.units",
    instrument=_H,
    unit="{unit}",
    says="units in one group commit",
    bounds=_UNITS,
)
COMMITS = Metric(
    name="landed.commit.duration",
    instrument=_H,
    unit="s",
    says="one group commit, until it was durable",
    bounds=_QUICK_S,
)
OPEN = Metric(
    name="landed.open_records",
    instrument=_G,
    unit="{record}",
    says="open records, by kind (`operation`, `plan`, `release`, …) and state",
    attributes=(KIND, STATE),
)
OLDEST_UNKNOWN = Metric(
    name="landed.oldest_unknown_seconds",
    instrument=_G,
    unit="s",
    says="since when the oldest operation in doubt may have taken effect; 0 without one",
)
OPEN_CASES = Metric(
    name="landed.open_cases",
    instrument=_G,
    unit="{case}",
    says="cases that wait for a person",
)
OWED_RELEASES = Metric(
    name="landed.owed_releases",
    instrument=_G,
    unit="{release}",
    says="undos that are owed; one that a person was asked about waits as a question",
)
READ_AT = Metric(
    name="landed.store_read_at",
    instrument=_G,
    unit="s",
    says="when the gauges were read last: seconds since the epoch",
)

METRICS: tuple[Metric, ...] = (
    *(OPERATIONS, CALLS, DOUBTS, CASES, RENEWALS, LOSSES, CONFLICTS, UNITS, COMMITS),
    *(OPEN, OLDEST_UNKNOWN, OPEN_CASES, OWED_RELEASES, READ_AT),
)
