"""The tools of a seller of logos, and how a model writes a plan of them, for the tests of `act`."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from landed.core.act import Offered
from landed.core.contract import Contract, Effect
from landed.tools.function import tool


class Line(BaseModel):
    text: str
    price: Decimal = Field(gt=0)
    pieces: int = 1


class Card(BaseModel):
    kind: Literal["card"]
    number: str = Field(min_length=4)


class Cash(BaseModel):
    kind: Literal["cash"]
    drawer: int


Draft = Annotated[str, Field(description="what to issue")]


@tool(effect="none")
async def find_contact(name: str) -> None:
    """Find a contact by name."""


@tool(effect="reversible", makes_type="draft", accepts={"contact": "contact"})
async def draft_invoice(contact: str, lines: list[Line], note: str | None = None) -> None:
    """Draft an invoice; nothing is issued."""


@tool(
    effect="irreversible",
    makes_type="invoice",
    accepts={"draft": "draft"},
    keyed="idempotency_key",
    fence="epoch",
)
async def issue_invoice(draft: Draft, idempotency_key: str, epoch: int) -> None:
    """Issue a draft."""


@tool(effect="irreversible", accepts={"invoice": "invoice", "card": "card"})
async def pay(invoice: str, how: Card | Cash, card: str | None = None, all: bool = True) -> None:
    """Record a payment."""


@tool(effect="reversible", makes_type="contact")
async def add_contact(name: str) -> None:
    """Add a contact."""


TOOLS: list[Offered] = [find_contact, draft_invoice, issue_invoice, pay, add_contact]
LINE = {"text": "logo", "price": "100"}


def step(called: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool": called, "arguments": arguments}


def plan(*steps: Any) -> dict[str, Any]:
    return {"steps": list(steps)}


INVOICE = plan(
    step("add_contact", name="Ana"),
    step("draft_invoice", contact="$1", lines=[LINE]),
    step("issue_invoice", draft="$2"),
    step("pay", invoice="$3", how={"kind": "cash", "drawer": 2}),
)


@dataclass
class Hand:
    """A tool whose schema was written by hand, such as one of another server."""

    name: str = "far"
    schema: Any = field(default_factory=lambda: {"type": "object", "properties": {}})
    contract: Contract = field(default_factory=lambda: Contract(effect=Effect.NONE))

    def check(self, arguments: Any) -> Any:
        return arguments
