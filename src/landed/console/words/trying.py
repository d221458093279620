"""The words of Try it, and those of every picture."""

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "nav.try": ("Try it", "Probar"),
    "picture.user": ("user", "usuario"),
    "picture.agent": ("agent", "agente"),
    "picture.doubt": ("in doubt", "en duda"),
    "picture.owed": ("undo owed", "deshacer pendiente"),
    "picture.of": ("Timeline: {title}", "Cronología: {title}"),
    "picture.as_text": ("The same as text", "Lo mismo en texto"),
    "picture.at": ("After", "A los"),
    "picture.who": ("Who", "Quién"),
    "picture.what": ("What", "Qué"),
    "picture.open": ("Open then", "Pendiente entonces"),
    "picture.none": ("Nothing happened here yet.", "Aquí aún no ha pasado nada."),
    "try.title": ("Try it", "Probar"),
    "try.about": (
        "A simulated restaurant, a simulated clock, and the same code that is served here. Nothing"
        " of it leaves this page.",
        "Un restaurante simulado, un reloj simulado y el mismo código que se sirve aquí. Nada sale"
        " de esta página.",
    ),
    "try.scenario": ("Scenario", "Escenario"),
    "try.play": ("Play", "Ejecutar"),
    "try.only_main": (
        "The switches are those of revise-in-flight.",
        "Los interruptores son los de revise-in-flight.",
    ),
    "try.request": ("The first request", "La primera petición"),
    "try.request.arrives": ("arrives", "llega"),
    "try.request.delayed": ("is delayed in the network", "se retrasa en la red"),
    "try.key": ("The key of a call in doubt", "La clave de una llamada en duda"),
    "try.key.close": ("is closed", "se cierra"),
    "try.key.lookup": (
        "is only looked up, and “not found” is taken for a no",
        "solo se consulta, y «no está» se toma por un no",
    ),
    "try.order": ("A change of mind", "Un cambio de idea"),
    "try.order.secure-first": ("secures the new table first", "asegura antes la mesa nueva"),
    "try.order.release-first": ("releases the old table first", "suelta antes la mesa vieja"),
    "try.saturday": ("Saturday", "El sábado"),
    "try.saturday.free": ("is free", "hay mesa"),
    "try.saturday.full": ("is full", "está lleno"),
    "try.process": ("The agent's process", "El proceso del agente"),
    "try.process.lives": ("lives", "sigue vivo"),
    "try.process.kept": (
        "is killed with a booking out; the store keeps its operations",
        "muere con una reserva en vuelo; el almacén conserva sus operaciones",
    ),
    "try.process.lost": (
        "is killed with a booking out; the store loses its operations",
        "muere con una reserva en vuelo; el almacén pierde sus operaciones",
    ),
    "try.naive": ("naive", "ingenuo"),
    "try.landed": ("landed", "landed"),
    "try.alone": ("this scenario", "este escenario"),
    "try.about.naive": (
        "takes a wait that was stopped for a call that was cancelled",
        "toma una espera interrumpida por una llamada cancelada",
    ),
    "try.about.landed": ("finds out, then decides", "averigua y después decide"),
    "try.about.alone": ("", ""),
    "try.says": ("The agent ends with", "El agente acaba con"),
    "try.nothing_said": ("nothing", "nada"),
    "try.holds": ("{service} holds", "{service} tiene"),
    "try.nothing": ("nothing", "nada"),
    "try.reconciled": ("Records and services", "Registros y servicios"),
    "try.reconciled.yes": ("agree", "coinciden"),
    "try.reconciled.no": ("do not agree", "no coinciden"),
    "try.tabulated": ("The table of results", "La tabla de resultados"),
    "try.tabulated.yes": ("says the same", "dice lo mismo"),
    "try.tabulated.no": ("says something else", "dice otra cosa"),
    "try.tabulated.none": (
        "says nothing of this combination",
        "no dice nada de esta combinación",
    ),
    "try.busy": (
        "Too many scenarios are being played. Press Play again in a moment.",
        "Se están ejecutando demasiados escenarios. Pulsa Ejecutar otra vez en un momento.",
    ),
    "try.missing": (
        "The simulations need a few more packages: pip install 'landed[demo]', then start again.",
        "Las simulaciones necesitan más paquetes: pip install 'landed[demo]', y arranca otra vez.",
    ),
}
