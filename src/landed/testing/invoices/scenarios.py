"""The invoice scenarios of `landed demo`, each a few lines."""

from dataclasses import replace

from landed.testing.invoices.scenario import End, InvoiceScenario
from landed.testing.invoices.scripts import (
    agreed_but,
    clicked_twice,
    invoice,
    looped,
    redeployed,
    retried,
    stopped,
    stopped_late,
    tried_by_a_stranger,
    typed_twice,
    undone,
)
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.mail_faults import MailFault

ISSUED = "F-2026-0001 Marta 605.00 due 18/11/2026"
ALL_OF_IT = f"{ISSUED}, reminder 13/11/2026"
OTHER_DAY = f"{ISSUED}, reminder 08/11/2026"
DRAFT, DRAFT_2 = "D1 draft for Marta 605.00", "D2 draft for Marta 605.00"
ONE_MAIL = ("F-2026-0001",)
MAIL_OUT_S = 3.0  # how long the mail server takes over its answer, in some scenarios

REFUSED = (MailFault(kind="refuse"),)
SLOW_DRAFT = (Fault(path="/drafts", kind="delay_reply", seconds=2.0),)
SLOW_NUMBER = (Fault(path="/drafts/*/issue", kind="delay_reply", seconds=2.0),)
SLOW_MAIL = (MailFault(kind="delay_reply", seconds=MAIL_OUT_S),)

DONE = End(
    invoices=(ALL_OF_IT,),
    mailed=ONE_MAIL,
    says={
        "en": (
            "Done: drafted D1 for Marta, 605.00; issued F-2026-0001",
            "emailed F-2026-0001 to marta@example.com",
            "reminded of F-2026-0001 on 13/11/2026",
        ),
        "es": ("Hecho: borrador D1 para Marta, 605,00", "emitida F-2026-0001", "el 13/11/2026"),
    },
)
PARTIAL = End(
    invoices=(ISSUED,),
    says={
        "en": ("Done: ", "Couldn't: Email", "Not done because of that: Remind", "Shall I retry?"),
        "es": ("Hecho: ", "No se pudo: ", "Sin hacer por eso: ", "¿Lo reintento?"),
    },
)

INVOICE = InvoiceScenario(
    name="invoice",
    line="'Invoice Marta, email it, remind her': one preview, one yes, four steps, each once.",
    script=invoice,
    end=DONE,
)
MAIL_FAILS = replace(
    INVOICE,
    name="invoice-mail-fails",
    line="The mail server refuses the address: what was done, what not, and shall I retry?",
    mail_faults=REFUSED,
    end=replace(PARTIAL, asked=2),
)
RETRY = replace(
    MAIL_FAILS,
    name="invoice-retry",
    line="The same, and a yes once the address works: the rest is done, under the same number.",
    script=retried,
    end=replace(DONE, asked=2),
)
CANCEL = replace(
    INVOICE,
    name="invoice-cancel",
    line="Stopped during the first step: that one is finished, the rest is not, undo is offered.",
    script=stopped,
    faults=SLOW_DRAFT,
    end=End(
        invoices=(DRAFT,),
        says={
            "en": ("Stopped: 1 of 4 done.", "It can be undone"),
            "es": ("Parado: 1 de 4 hechos.", "Se puede deshacer"),
        },
    ),
)
CANCEL_LATE = replace(
    CANCEL,
    name="invoice-cancel-late",
    line="Stopped while the number is taken: the invoice is issued, and known; it can be voided.",
    script=stopped_late,
    faults=SLOW_NUMBER,
    end=End(
        invoices=(ISSUED,),
        says={
            "en": ("Stopped: 2 of 4 done.", "issued F-2026-0001", "it can be corrected"),
            "es": ("Parado: 2 de 4 hechos.", "emitida F-2026-0001", "se puede corregir"),
        },
    ),
)
UNDO = replace(
    INVOICE,
    name="invoice-undo",
    line="A draft needs no yes, runs at once, and is taken back by a button.",
    script=undone,
    end=End(asked=0, says={"en": ("Undone: ",), "es": ("Deshecho: ",)}),
)
LOOKALIKE = replace(
    INVOICE,
    name="invoice-lookalike",
    line="The same draft asked for twice: the second time a person is asked; a yes makes two.",
    script=typed_twice,
    end=End(
        invoices=(DRAFT, DRAFT_2),
        says={"en": ("drafted D2",), "es": ("borrador D2",)},
    ),
)
DOUBLE_CLICK = replace(
    INVOICE,
    name="invoice-double-click",
    line="The button is pressed twice at once: one run, and both clicks hear of it.",
    script=clicked_twice,
)
REDEPLOY = replace(
    INVOICE,
    name="invoice-redeploy",
    line="Killed after the mail server said 250, before that was written: one mail, one number.",
    kill=("after:send:send_invoice",),
)
DEPLOY = replace(
    INVOICE,
    name="invoice-deploy",
    line="Asked to end while the mail is out: that is finished first, the next process goes on.",
    script=redeployed,
    mail_faults=SLOW_MAIL,
    looks=False,
)
STRANGER = replace(
    INVOICE,
    name="invoice-stranger",
    line="Somebody else presses the button: nothing happens, and it is still good for the user.",
    script=tried_by_a_stranger,
)
OTHER_DATE = replace(
    INVOICE,
    name="invoice-other-date",
    line="'Yes, but change the date' is no yes: another plan is shown, with the other date.",
    script=agreed_but,
    end=End(
        invoices=(OTHER_DAY,),
        mailed=ONE_MAIL,
        asked=2,
        says={"en": ("on 08/11/2026",), "es": ("el 08/11/2026",)},
    ),
)
LOOP = replace(
    INVOICE,
    name="invoice-loop",
    line="The model sends the same plan five times at once, and once more: one draft.",
    script=looped,
    end=End(invoices=(DRAFT,), asked=0, says={"en": ("drafted D1",), "es": ("borrador D1",)}),
)

INVOICES: tuple[InvoiceScenario, ...] = (
    INVOICE,
    MAIL_FAILS,
    RETRY,
    CANCEL,
    CANCEL_LATE,
    UNDO,
    LOOKALIKE,
    DOUBLE_CLICK,
    REDEPLOY,
    DEPLOY,
    STRANGER,
    OTHER_DATE,
    LOOP,
)
INVOICES_BY_NAME = {scenario.name: scenario for scenario in INVOICES}
