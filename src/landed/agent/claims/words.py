"""The words by which a text tells of an effect, and those that take such a telling back.

English and Spanish. What a tool's contract says of itself comes first (`landed.agent.claims`); this
is what its contract cannot know: that "booked" and "reservado" are one thing, that "may have" is
not "have", and the verbs by which a model tells of a tool that there is not.

Left out, and why:

- done, finished, handled, took care of: no word of what was done, so nothing to compare.
- checked, found, looked up, read, saw: they change nothing.
- told, asked, answered: what is said in a conversation is no effect.
- built, fixed, wrote, installed: the work of files and a shell, of which there is no record here.
"""

from collections.abc import Mapping


def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


# What is done ▸ the verbs and nouns for it: English verbs, Spanish ones, nouns of both.
EFFECTS: Mapping[str, tuple[str, str, str]] = {
    "reserve": ("book reserve", "reservar", "booking reservation reserva"),
    "refund": (
        "refund reimburse return",
        "reembolsar devolver reintegrar",
        "refund reimbursement reembolso devolución",
    ),
    "pay": ("pay transfer wire", "pagar transferir abonar", "payment transfer pago transferencia"),
    "charge": ("charge debit", "cobrar cargar", "charge cobro cargo"),
    "send": (
        "send email mail text message notify forward resend",
        "enviar mandar notificar avisar reenviar",
        "email mail message text notification correo mensaje aviso",
    ),
    "cancel": ("cancel void revoke", "cancelar anular", "cancellation cancelación anulación"),
    "buy": ("buy purchase order", "comprar encargar", "order purchase pedido compra"),
    "schedule": (
        "schedule reschedule",
        "programar agendar reprogramar",
        "appointment meeting cita reunión",
    ),
    "publish": ("publish deploy post", "publicar desplegar", "deployment despliegue"),
    "subscribe": ("subscribe unsubscribe enrol enroll", "suscribir inscribir", "subscription"),
    "undo": ("undo revert reverse", "deshacer revertir", "reversal"),
    "create": ("create add register open", "crear añadir registrar abrir", ""),
    "update": ("update change modify", "actualizar cambiar modificar", ""),
    "delete": ("delete remove erase", "borrar eliminar", "deletion borrado"),
}

# Of these, the ones that files and a shell do as well, with no record of it; and what a text may
# well have created by itself.
WORK = frozenset({"create", "update", "delete", "publish", "undo"})
PROSE = _words(
    "summary list overview plan draft note outline comparison explanation version proposal "
    "resumen lista plan borrador nota esquema propuesta versión"
)

# To have sent one of these is to have asked.
REQUESTS = _words(
    "request requests query question reply answer link "
    "solicitud petición consulta pregunta respuesta"
)

# What takes something back, whatever the tool is called that does it.
BACK = frozenset({"cancel", "delete", "refund", "undo"})

# Verbs that say that something happened, and leave what it was to a noun.
LIGHT = _words(
    "make place process complete confirm submit finalise finalize issue arrange go "
    "hacer realizar completar confirmar procesar tramitar gestionar emitir"
)
# Never an effect, whatever a tool is called.
READS = _words(
    "check find look read see search list get show verify review compare calculate note need use "
    "fail ask tell be have do comprobar buscar leer ver mirar revisar consultar"
)
NOTHING = _words("do change happen hacer cambiar")
"""With "nothing" before them they speak of all there is."""

# Past forms that no rule gives.
IRREGULAR: Mapping[str, str] = {
    "sent": "send",
    "resent": "resend",
    "paid": "pay",
    "made": "make",
    "bought": "buy",
    "sold": "sell",
    "withdrew": "withdraw",
    "withdrawn": "withdraw",
    "undid": "undo",
    "undone": "undo",
    "done": "do",
    "gone": "go",
    "went": "go",
    "put": "put",
    "set": "set",
    "gave": "give",
    "given": "give",
    "took": "take",
    "taken": "take",
    "written": "write",
    "wrote": "write",
    "lent": "lend",
    "rebuilt": "rebuild",
    "overwritten": "overwrite",
}
IRREGULAR_ES: Mapping[str, tuple[str, str]] = {
    **{f"devuelt{end}": ("devolver", "part") for end in ("o", "a", "os", "as")},
    **{f"deshech{end}": ("deshacer", "part") for end in ("o", "a", "os", "as")},
    **{f"hech{end}": ("hacer", "part") for end in ("o", "a", "os", "as")},
    **{f"abiert{end}": ("abrir", "part") for end in ("o", "a", "os", "as")},
    **{f"inscrit{end}": ("inscribir", "part") for end in ("o", "a", "os", "as")},
    **{f"suscrit{end}": ("suscribir", "part") for end in ("o", "a", "os", "as")},
    "hice": ("hacer", "first"),
    "hizo": ("hacer", "third"),
    "deshice": ("deshacer", "first"),
}

# Where a part of a sentence ends that stands for itself.
BREAKS = _words(
    "; — – | but however although though because while whereas pero aunque porque sino mientras"
)
PAUSES = _words(", : ( ) [ ] -")
JOINS = _words("and then & y e luego")
ORS = _words("or nor o u ni")
# What comes after these is told beside the claim: "instead of Friday", "because of R7".
ASIDE = _words(
    "instead rather because since than unless until before after so replacing "
    "that which saying que diciendo lugar vez porque antes después hasta tras"
)

# A label before a colon that says of all after it that it is not, or no longer, so.
LABELS = _words(
    "not undone could unable failed sin no deshecho pending plan step paso next pendiente"
)

# Not said as a fact: what may be, will be, or would be if.
MODAL = _words(
    "may might could would should will shall can must probably perhaps maybe possibly apparently "
    "presumably seemingly seems appears likely supposedly "
    "puede pueden podría podrían quizá quizás posiblemente probablemente debe debería habría haya "
    "hayan hubiera hubiese parece seguramente"
)
CONDITIONS = _words(
    "if unless whether once when until before after assuming si cuando hasta antes después tras"
)
SAID = _words(
    "said say says asked mentioned claimed thought think believe believed assumed wanted expected "
    "hoped meant supposed pretend dijiste dices dijo pediste creo creía pensaba suponía"
)
# What says, near a claim, that it is not known.
HEDGES = _words(
    "unknown unclear unsure uncertain unconfirmed assumed assume assuming presumably treated "
    "may might probably perhaps maybe possibly pending awaiting "
    "desconocido desconocida puede quizá quizás pendiente doy"
)
HEDGING = (
    *("not sure", "not know", "can not tell", "cannot tell", "not confirm", "not been confirmed"),
    *("not confirmed", "never confirmed", "not received", "not heard", "not verify"),
    *("no answer", "no reply", "no confirmation", "no response", "never came", "whether it"),
    *("finding out", "find out", "not certain", "yet to see", "as done", "as sent"),
    *("no sé", "no se sabe", "no puedo comprobar", "no pude confirmar", "sin confirmar"),
    *("no está confirmad", "no he podido confirmar", "se da por", "no lo confirmó", "averiguando"),
    *("sin respuesta", "no he podido comprobar"),
)
# Read, not done: from a list, a calendar, a status; or long before; or a rule.
SEEN = _words(
    "automatically usually always automáticamente siempre "
    "according shows show showing see status record records says checked found list listed history "
    "yesterday last ago previously earlier originally since "
    "según muestra consta veo aparece estado ayer pasado pasada hace"
)
NEWS = _words("confirm inform report announce confirmar informar confirmarte decirte")
"""After these a sentence begins anew: "I can confirm that …"."""

NOT = _words("not never nunca jamás unable failed nor neither no sin tampoco ni")
NONE = _words("nothing no none nobody neither")
NONE_ES = _words("nada ningún ninguna ninguno nadie")
# With these a no is about something more: "I did not book another one".
MORE = _words(
    "first primer primera primero attempt attempts try intento intentos else again another other "
    "others more further second twice additional extra only just new "
    "duplicate except without otra otro otros otras más nuevo nueva segunda segundo dos vez salvo "
    "solo sólo"
)

FIRST = frozenset({"i", "we"})
FINITE = _words("is are was were can cannot will has have would may should must be")
SKIPPED = _words(
    "already just also now then not never successfully fully recently both all yet still since "
    "ever even longer indeed therefore ya también recién no nunca aún todavía"
)
YOURS = _words("your yours tu tus su sus")
# A verb in the passive with another subject than these tells a rule: "refunds are issued within …".
DEFINITE = _words("your the both all my our these they tus los las sus mis ambas ambos")
# What opens a noun, or stands for one: a verb beside it has a subject or an object of its own.
OPENERS = _words(
    "the a an your my our his her their its this that these those it them him us me you he she "
    "they who which what any every some el la los las un una tu su mi nuestro nuestra lo le te me "
    "usted ustedes ellos ella él que quien"
)

UNITS = _words(
    "second seconds minute minutes hour hours day days week weeks month months year years business "
    "times percent steps step of working minuto minutos hora horas día días semana semanas mes "
    "meses año años segundos por"
)
TOTALS = _words("total totalling altogether together sum overall each suma conjunto")
PLACES = _words("step option paso opción number")
DAYS: Mapping[str, int] = {
    day: number
    for number, days in enumerate(
        (
            "monday mondays lunes",
            "tuesday tuesdays martes",
            "wednesday wednesdays miércoles",
            "thursday thursdays jueves",
            "friday fridays viernes",
            "saturday saturdays sábado sábados",
            "sunday sundays domingo domingos",
        )
    )
    for day in days.split()
}
# Only with a capital letter: "sat" and "sun" are words of their own.
SHORT_DAYS: Mapping[str, int] = {
    day: number
    for number, days in enumerate(
        ("Mon Lun", "Tue Tues Mar", "Wed Mié", "Thu Thur Jue", "Fri Vie", "Sat Sáb", "Sun Dom")
    )
    for day in days.split()
}
