"""Wrong designs about doubt, each wrong in one thing; out of reach of `landed.open`."""

import math
from dataclasses import replace

from landed.core.absorb import CameBack, Moved, absorb
from landed.core.contract import Contract
from landed.core.doubt import Verdict, WaitUntil
from landed.core.operation import Operation
from landed.core.rules import Rules
from landed.core.tool import Tool
from landed.testing.designs import Design, Rekeyed
from landed.testing.doubts.around import Amended, Unguarded
from landed.testing.variants import never_forgets, receipt_is_yes, resend_forgotten


def never_looks(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Leave what is in doubt to somebody else, and name nobody."""
    return WaitUntil(math.inf)


def takes_it_as_it_comes(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Forget how often it was not there, once it is."""
    return absorb(replace(operation, absences=0), contract, back)


def named_by_the_model(tool: Tool) -> Tool:
    """Have the key be whatever the model calls this try, which is all that keeps two apart."""
    if "reason" not in tool.schema["properties"]:  # type: ignore[operator]
        return tool
    return Rekeyed(
        inner=Unguarded(tool),
        send_key=lambda call: str(call.arguments["reason"]),
        ask_key=lambda call: str(call.arguments["reason"]),
    )


def unguarded(tool: Tool) -> Tool:
    """Have a call in doubt stand in nobody's way."""
    return Unguarded(tool)


def amended(tool: Tool) -> Tool:
    """Have every send say what somebody wanted last."""
    return Amended(tool)


MODEL_KEY = Design(wrap=named_by_the_model)
NO_RECONCILER = Design(rules=Rules(doubt=never_looks))
RETENTION_IGNORED = Design(rules=Rules(doubt=resend_forgotten, absorb=never_forgets))
RETURN_IS_DONE = Design(rules=Rules(absorb=receipt_is_yes))
NOTHING_BLOCKS = Design(wrap=unguarded)
PAYLOAD_CHANGES = Design(wrap=amended)
RECOVERED_IS_WELL = Design(rules=Rules(absorb=takes_it_as_it_comes))
