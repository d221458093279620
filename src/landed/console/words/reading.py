"""The words of the pages that are read: an operation, a conversation, the search, the audit."""

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "op.title": ("Operation", "Operación"),
    "op.state": ("How it stands", "Cómo está"),
    "op.means.recorded": (
        "It is written down; nothing was sent.",
        "Está anotada; no se ha enviado nada.",
    ),
    "op.means.sent": (
        "Its first send is out, or was when its process died.",
        "Su primer envío está fuera, o lo estaba cuando murió su proceso.",
    ),
    "op.means.resent": (
        "It is in doubt, and out once more under the same key.",
        "Está en duda, y fuera otra vez con la misma clave.",
    ),
    "op.means.accepted": (
        "The service took it; its effect is still to be seen.",
        "El servicio la aceptó; su efecto está por ver.",
    ),
    "op.means.unknown": (
        "Nobody answered; it is being found out.",
        "Nadie contestó; se está averiguando.",
    ),
    "op.means.assumed": (
        "It is treated as landed, as its contract allows; nobody confirmed it.",
        "Se da por hecha, como permite su contrato; nadie la confirmó.",
    ),
    "op.means.undecided": (
        "It cannot be found out; it is in front of a person.",
        "No se puede averiguar; está ante una persona.",
    ),
    "op.means.confirmed": ("It took effect.", "Tuvo efecto."),
    "op.means.failed": ("It definitely had no effect.", "No tuvo efecto, con seguridad."),
    "op.means.withdrawn": (
        "It was taken back before anything was sent.",
        "Se retiró antes de enviar nada.",
    ),
    "op.contradicted": (
        "A later answer said otherwise than what was settled; a person has to look at it.",
        "Una respuesta posterior dijo otra cosa que lo resuelto; tiene que mirarlo una persona.",
    ),
    "op.blocked": ("Waits for", "Espera a"),
    "op.tool": ("Tool", "Herramienta"),
    "op.asked_by": ("Asked for by", "La pidió"),
    "op.session": ("Conversation", "Conversación"),
    "op.made": ("Written down", "Anotada"),
    "op.send_by": ("May leave until", "Puede salir hasta"),
    "op.first_sent": ("First sent", "Primer envío"),
    "op.last_sent": ("Last sent", "Último envío"),
    "op.settled": ("Settled", "Resuelta"),
    "op.tries": ("Sends", "Envíos"),
    "op.tries.said": (
        "{count}, of which {unsent} never left",
        "{count}, de los que {unsent} no llegaron a salir",
    ),
    "op.looks": ("Looks since then", "Consultas desde entonces"),
    "op.looks.said": ("{count}, the last: {looked}", "{count}, la última: {looked}"),
    "op.closing": ("Key", "Clave"),
    "op.closing.said": (
        "closed, or being closed: it is never sent again",
        "cerrada, o cerrándose: no se envía más",
    ),
    "op.unwanted": ("No longer wanted since", "Ya no se quiere desde"),
    "op.arguments": ("What was asked for", "Lo que se pidió"),
    "op.result": ("What the service answered", "Lo que contestó el servicio"),
    "op.figures": ("What was agreed to", "Lo que se aceptó"),
    "op.cost": ("Cost", "Coste"),
    "op.evidence": ("Why it is so", "Por qué está así"),
    "op.evidence.none": ("Nothing is known of it yet.", "Aún no se sabe nada."),
    "op.at": ("When", "Cuándo"),
    "op.source": ("From", "De"),
    "op.says": ("What it said", "Qué dijo"),
    "op.position": ("at position {position}", "en la posición {position}"),
    "op.ids": ("What to look for", "Qué buscar"),
    "op.ids.help": (
        "In the service's records and in logs: our id, the key, what the service gave.",
        "En los registros del servicio y en los logs: nuestro id, la clave, lo que dio el"
        " servicio.",
    ),
    "op.id": ("Operation", "Operación"),
    "op.key": ("Key", "Clave"),
    "op.no_key": ("none: the service has none", "ninguna: el servicio no las tiene"),
    "op.made_id": ("Made", "Creó"),
    "op.known_by": ("The service's answer names", "La respuesta nombra"),
    "op.up": ("Where it comes from", "De dónde viene"),
    "op.down": ("What came of it", "Qué salió de ella"),
    "op.promises": ("What its contract promises", "Qué promete su contrato"),
    "op.timeline": ("What happened around it", "Qué pasó alrededor"),
    "op.not_whole": (
        "Only the part of the conversation near it was looked at. The conversation has the rest.",
        "Solo se miró la parte de la conversación que está cerca. La conversación tiene el resto.",
    ),
    "promise.effect.none": ("It changes nothing.", "No cambia nada."),
    "promise.effect.reversible": ("It can be taken back.", "Se puede deshacer."),
    "promise.effect.irreversible": ("It is final.", "Es definitiva."),
    "promise.confirm": ("A person has to agree first.", "Antes tiene que dar el sí una persona."),
    "promise.confirm.varies": (
        "Whether a person has to agree depends on what is asked for.",
        "Que una persona tenga que dar el sí depende de lo que se pida.",
    ),
    "promise.permission": (
        "Whoever asks needs the permission “{permission}”.",
        "Quien la pide necesita el permiso «{permission}».",
    ),
    "promise.unique": ("There is one effect for {rule}, ever.", "Hay un solo efecto por {rule}."),
    "promise.keyed": (
        "The service does a key ({name}) once; it remembers it {kept} and {compares}.",
        "El servicio hace una clave ({name}) una vez; la recuerda {kept} y {compares}.",
    ),
    "promise.for_ever": ("for ever", "para siempre"),
    "promise.for_seconds": ("for {seconds} s", "{seconds} s"),
    "promise.compares": (
        "refuses it with other details",
        "la rechaza con otros detalles",
    ),
    "promise.compares.not": ("does not compare details", "no compara los detalles"),
    "promise.unkeyed": (
        "The service has no keys: it is never sent a second time by itself.",
        "El servicio no tiene claves: nunca se envía por segunda vez sin más.",
    ),
    "promise.lookup": (
        "The service can be asked whether it landed.",
        "Se puede preguntar al servicio si tuvo efecto.",
    ),
    "promise.close": (
        "A key can be closed, so that nothing can land late.",
        "Una clave se puede cerrar, para que nada llegue tarde.",
    ),
    "promise.read_back": (
        "It counts as landed once it can be read where it matters.",
        "Cuenta como hecha cuando se puede leer donde importa.",
    ),
    "promise.list_effects": (
        "What the service holds can be listed, to find what nobody recorded.",
        "Se puede listar lo que tiene el servicio, para hallar lo que nadie anotó.",
    ),
    "promise.settlement_lag": (
        "Its effect is visible within {seconds} s.",
        "Su efecto se ve en {seconds} s.",
    ),
    "promise.refuses_after": (
        "The service refuses requests older than {seconds} s.",
        "El servicio rechaza peticiones de más de {seconds} s.",
    ),
    "promise.assume_after": (
        "In doubt for {seconds} s, it is treated as landed.",
        "En duda durante {seconds} s, se da por hecha.",
    ),
    "promise.escalate_after": (
        "In doubt for {seconds} s, it goes to a person.",
        "En duda durante {seconds} s, pasa a una persona.",
    ),
    "promise.deadline": ("One send has {seconds} s.", "Un envío tiene {seconds} s."),
    "promise.tries": ("It is sent at most {count} times.", "Se envía {count} veces como mucho."),
    "promise.undo": ("It is undone by {tool}.", "La deshace {tool}."),
    "promise.undo.within": (
        "It is undone by {tool}, within {seconds} s.",
        "La deshace {tool}, en {seconds} s.",
    ),
    "promise.undo.none": ("Nothing undoes it.", "Nada la deshace."),
    "promise.correct": ("It is corrected by {tool}.", "La corrige {tool}."),
}
