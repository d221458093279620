"""The words that every page has: its frame, signing in, and what went wrong."""

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "landed": ("landed", "landed"),
    "skip": ("Skip to the content", "Ir al contenido"),
    "nav": ("Main", "Principal"),
    "nav.waiting": ("Waiting for you", "Te esperan"),
    "nav.running": ("Running", "En curso"),
    "nav.done": ("Done", "Hecho"),
    "who": ("{principal} · {tenant}", "{principal} · {tenant}"),
    "sign_out": ("Sign out", "Salir"),
    "sign_in": ("Sign in", "Entrar"),
    "sign_in.token": ("Your token", "Tu token"),
    "sign_in.help": (
        "Paste the token that stands for you. It is kept in a sealed cookie of this browser, for"
        " twelve hours, and nowhere else.",
        "Pega el token que te representa. Se guarda en una cookie sellada de este navegador,"
        " durante doce horas, y en ningún otro sitio.",
    ),
    "sign_in.by_link": (
        "Nobody has a token here. Open the link that `landed serve` printed when it started; it"
        " lets one browser in. Start it again for another link.",
        "Aquí nadie tiene token. Abre el enlace que escribió `landed serve` al arrancar; deja"
        " entrar a un navegador. Arráncalo otra vez para tener otro enlace.",
    ),
    "sign_in.wrong.token": (
        "Nobody is known by this token. Paste it again, or ask for another one.",
        "Nadie responde a este token. Pégalo otra vez, o pide otro.",
    ),
    "sign_in.wrong.link": (
        "This link is not good any more: it lets one browser in, once. Start `landed serve` again"
        " for another one.",
        "Este enlace ya no vale: deja entrar a un navegador, una vez. Arranca `landed serve` otra"
        " vez para tener otro.",
    ),
    "again": ("One moment", "Un momento"),
    "again.go": ("Go on", "Seguir"),
    "problem": ("It was not done", "No se ha hecho"),
    "problem.back": ("What waits for you", "Lo que te espera"),
    "problem.malformed": (
        "This form cannot be read. Go back, load the page again and send it once more.",
        "Este formulario no se puede leer. Vuelve, carga la página otra vez y envíalo de nuevo.",
    ),
    "problem.unauthenticated": (
        "You are not signed in any more, so nothing was done. Sign in and look again.",
        "Ya no has entrado, así que no se ha hecho nada. Entra y vuelve a mirarlo.",
    ),
    "problem.forbidden": (
        "This is not for you to do: it takes the token of a person, and some of it that of an"
        " administrator. Sign in with that one.",
        "Esto no te corresponde: hace falta el token de una persona, y para algo el de quien"
        " administra. Entra con ese.",
    ),
    "problem.elsewhere": (
        "This did not come from a page of this console, so nothing was done. Open the console by"
        " its own address, load the page again and press the button there.",
        "Esto no venía de una página de esta consola, así que no se ha hecho nada. Abre la consola"
        " por su propia dirección, carga la página otra vez y pulsa allí el botón.",
    ),
    "problem.absent": (
        "There is nothing of that name, or it is not yours. Look at what waits for you.",
        "No hay nada con ese nombre, o no es tuyo. Mira lo que te espera.",
    ),
    "problem.no-such-method": (
        "This cannot be done here. Go back and use the buttons of the page.",
        "Esto no se puede hacer aquí. Vuelve y usa los botones de la página.",
    ),
    "problem.too-slow": (
        "The form took too long to arrive, so nothing was done. Send it once more.",
        "El formulario tardó demasiado en llegar, así que no se ha hecho nada. Envíalo otra vez.",
    ),
    "problem.too-large": (
        "The form is too large, so nothing was done. Say it in fewer words.",
        "El formulario es demasiado grande, así que no se ha hecho nada. Dilo con menos palabras.",
    ),
    "problem.not-json": (
        "The console takes forms of its own pages only. Code calls the API below /v1.",
        "La consola solo acepta formularios de sus páginas. El código llama a la API, bajo /v1.",
    ),
    "problem.invalid": (
        "What was asked for does not fit, so nothing was done. Go back and look at the page again.",
        "Lo pedido no encaja, así que no se ha hecho nada. Vuelve y mira la página otra vez.",
    ),
    "problem.state": (
        "It cannot be done as it stands now, so nothing was done. Look at how it stands.",
        "No se puede hacer tal como está ahora, así que no se ha hecho nada. Mira cómo está.",
    ),
    "problem.expired": (
        "Its time is over, so nothing was done. Ask for it again if it is still wanted.",
        "Se ha pasado su plazo, así que no se ha hecho nada. Pídelo otra vez si aún se quiere.",
    ),
    "problem.moved": (
        "It is not as you saw it, so nothing was done. Look at it again.",
        "Ya no está como lo viste, así que no se ha hecho nada. Míralo otra vez.",
    ),
    "problem.fingerprint": (
        "This is not what was shown to you, so nothing was done. Look at it again.",
        "Esto no es lo que se te mostró, así que no se ha hecho nada. Míralo otra vez.",
    ),
    "problem.not-agreed": (
        "A person has to agree to this first, so nothing was done.",
        "Antes tiene que dar el sí una persona, así que no se ha hecho nada.",
    ),
    "problem.ours": (
        "Something is wrong here; it was written to the log. What was decided before stands: look"
        " at it before you press a button again.",
        "Algo va mal aquí; ha quedado en el registro. Lo decidido antes sigue en pie: míralo antes"
        " de volver a pulsar un botón.",
    ),
    "problem.store": (
        "The store cannot do this now, so nothing was done. Try it again in a moment.",
        "El almacén no puede hacer esto ahora, así que no se ha hecho nada. Inténtalo en un"
        " momento.",
    ),
    "waiting.none": ("Nothing waits for you.", "No te espera nada."),
}
