"""Names: who asks, which key an operation has at the service, and what may exist only once.

The wire key comes from the operation's own id, which is made once and stored before the first
send; it never depends on a turn, an attempt, a process or the model. A digest of the arguments is
used only to *find* an operation that already exists (the identity), never as the key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from landed.core.canonical import Json, fingerprint
from landed.core.contract import Contract
from landed.core.errors import ProposalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who wants a call.

    The same ask (tenant, session, input, call id) with equal arguments is the same call; without a
    call id each call is its own. `send_by` (UTC, seconds since the epoch) is until when a send may
    leave; None leaves it to the runtime (a quarter of an hour after the call was made).
    """

    tenant: str = "default"
    principal: str = ""
    session: str = "main"
    input: str = ""
    turn: str = ""
    call_id: str = ""
    send_by: float | None = None


def key_for(contract: Contract, *, operation: str, session: str) -> str:
    """Return the key that names `operation` at the service; "" where the service has no keys."""
    if not contract.keyed:
        return ""
    return contract.key_form.format(operation=operation, session=session)


def identity_of(contract: Contract, *, tool: str, arguments: Mapping[str, Json]) -> str:
    """Return the digest of what makes two calls of a tool "the same thing"."""
    chosen = arguments
    if contract.identity is not None:
        chosen = {name: arguments.get(name) for name in contract.identity}
    return fingerprint({"tool": tool, "arguments": dict(chosen)}, domain="identity")


def held_names(
    contract: Contract, *, ask: Ask, tool: str, arguments: Mapping[str, Json], identity: str
) -> tuple[str, ...]:
    """Return the names an operation holds while it may still have an effect.

    Its targets, or where it has none its identity within the session. Raises `ProposalError` when
    the arguments lack what a target's template names.
    """
    if not contract.target:
        return (name_of("same", ask.tenant, ask.session, tool, identity),)
    try:
        targets = [template.format_map(arguments) for template in contract.target]
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        raise ProposalError(
            f"{tool}: its target {contract.target} needs an argument that was not given ({error})"
        ) from None
    names = (name_of("target", ask.tenant, contract.service, target) for target in targets)
    return tuple(dict.fromkeys(names))


def targets_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return which resources a call touches, of the names that it holds."""
    parts = (name.split("/") for name in names if name.startswith("target/"))
    targets = ("/".join(each[3:]) for each in parts)
    return tuple(each.replace("%2F", "/").replace("%25", "%") for each in targets)


def unique_names(
    contract: Contract, *, tenant: str, arguments: Mapping[str, Json]
) -> tuple[str, ...]:
    """Return the names of the business rules that an operation comes under: one effect for each.

    They are held from the first send and freed only when it is certain that there was no effect.
    Raises `ProposalError` when the arguments lack what a rule's template names.
    """
    try:
        rules = [template.format_map(arguments) for template in contract.unique]
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        raise ProposalError(
            f"the rule {contract.unique} needs an argument that was not given ({error})"
        ) from None
    return tuple(dict.fromkeys(name_of("unique", tenant, rule) for rule in rules))


def ask_name(ask: Ask) -> str:
    """Return the name that one ask takes for ever; "" when it has no call id."""
    if not ask.call_id:
        return ""
    return name_of("ask", ask.tenant, ask.session, ask.input, ask.call_id)


def commit_name(*, tenant: str, principal: str, call_id: str) -> str:
    """Return the name that one commit takes for ever; "" when it has no call id."""
    return name_of("commit", tenant, principal, call_id) if call_id else ""


def name_of(*parts: str) -> str:
    """Return a name of several parts; what stands in one can't be taken for another's."""
    joined = "/".join(parts)
    if joined.count("/") == len(parts) - 1 and "%" not in joined:
        return joined
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
