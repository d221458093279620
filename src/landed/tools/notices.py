"""Tells somebody's server that a case opened: its facts, signed, under one id for ever."""

from collections.abc import Mapping
from hashlib import sha256

from landed.core.canonical import Json, canonical
from landed.core.case import Standing
from landed.core.errors import LandedError
from landed.core.outcome import NoAnswer, Refused
from landed.tools.signing import is_id
from landed.tools.webhook import PAYLOAD_MAX_BYTES, Webhook

OPENED = "case.opened"


class WebhookNotify:
    """Hand this to `landed.open(…, notify=…)`: it delivers each case to one receiver.

    `arguments=False` leaves out what was authorised, where the receiver may not see it. A case that
    is too large for a webhook goes without its arguments and evidence.
    """

    def __init__(self, webhook: Webhook, *, arguments: bool = True) -> None:
        self._webhook = webhook
        self._arguments = arguments

    async def opened(self, standing: Standing) -> None:
        """Deliver it. Raises `LandedError` where the receiver surely or maybe did not get it."""
        payload = facts(standing, arguments=self._arguments)
        came = await self._webhook.deliver(event_id(standing), payload)
        if isinstance(came, Refused | NoAnswer):
            raise LandedError(f"the receiver of webhooks has no {standing.id}: {came.reason}")


def event_id(standing: Standing) -> str:
    """Return the id of the event that a case opened; the case's own where a header can carry it."""
    if is_id(standing.id):
        return standing.id
    return f"case-{sha256(standing.id.encode()).hexdigest()}"


def facts(standing: Standing, *, arguments: bool = True) -> Mapping[str, Json]:
    """Return what the receiver is told, in the form that Standard Webhooks advises.

    Times are UTC, seconds since the epoch.
    """
    told: dict[str, Json] = {
        "case": standing.id,
        "why": standing.why.value,
        "state": standing.state,
        "says": standing.says,
        "since": standing.since,
        "tenant": standing.tenant,
        "session": standing.session,
        "tool": standing.tool,
        "operation": standing.operation,
        "key": standing.key,
        "known_until": standing.known_until,
        "principal": standing.principal,
        "turn": standing.turn,
        "plan": standing.plan,
        "retries": standing.retries,
        "undoes": standing.undoes,
        "may": [ruling.value for ruling in standing.may],
    }
    more: dict[str, Json] = {
        "evidence": [
            {"source": one.source.value, "at": one.at, "says": one.says, "by": one.by}
            for one in standing.evidence
        ]
    }
    if arguments and standing.arguments is not None:
        more["arguments"] = standing.arguments
    whole: Mapping[str, Json] = {"type": OPENED, "data": {**told, **more}}
    if len(canonical(whole)) <= PAYLOAD_MAX_BYTES:
        return whole
    return {"type": OPENED, "data": told}
