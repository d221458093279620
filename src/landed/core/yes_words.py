"""The words that make a yes or a no, one table for each language, and why others are not in it.

A phrase is here if, as the whole answer to "Shall I do it?", it can only mean that one thing.
What is also said to fill a pause, to agree with a statement or to ask is left out: to ask once more
costs a moment, a wrong yes costs whatever was about to be done.

Left out, and why:

- ok, okay, vale, well, right, so, bueno, pues, bien: they open a sentence or say "I heard you".
  Only "vale, adelante" is here, as a whole.
- sure, fine, claro, of course, por supuesto, absolutely: they agree with what was said, and begin
  as many objections as orders ("sure, if it is free").
- agreed, de acuerdo, correct, correcto, exacto: they judge a statement; they order nothing.
- yeah, yep, yup, y, nope, nah, k: too short, and too often half a word or a slip of the thumb.
- cancel, cancela, stop, para: after "Cancelling costs 20. Shall I?" they may mean either answer.
- later, not now, ahora no, wait, espera: no answer yet, and a no would waive what is owed.
- never, nunca, jamás: they forbid more than was asked.
- yes and no of other languages: a plan is shown in English or in Spanish, and answered in it.
"""

from collections.abc import Mapping

# Each phrase is a yes or a no by itself; phrases may follow one another ("yes, please").
YES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "yes",
        "confirm",  # as it stands on a button, and as "confirm 2"
        "confirmed",
        "i confirm",
        "i confirm it",
        "approve",
        "approved",
        "i approve",
        "i approve it",
        "go ahead",
        "proceed",
        "please do",
        "do it",
    ),
    "es": (
        "sí",
        "si",  # "if" only when more follows, and then what follows is not in this table
        "confirmo",
        "lo confirmo",
        "confirmado",
        "confirmar",
        "apruebo",
        "lo apruebo",
        "aprobado",
        "aprobar",
        "adelante",
        "vale adelante",
        "procede",
        "hazlo",
    ),
}
NO: Mapping[str, tuple[str, ...]] = {
    "en": (
        "no",
        "don't",
        "don't do it",
        "do not",
        "do not do it",
        "decline",
        "i decline",
        "reject",
        "keep it",
    ),
    "es": (
        "no",
        "no lo hagas",
        "mejor no",
        "déjalo",
        "consérvalo",
        "rechazo",
        "lo rechazo",
        "rechazar",
    ),
}

# Said beside a yes or a no; alone they mean nothing. The thumb goes with a yes only.
POLITE = ("please", "por favor", "thanks", "thank you", "gracias", "muchas gracias", "🙏")
THUMB = "👍"

# Between a phrase and its number: "confirm number 2", "sí, nº 2". "No." is an answer, never this,
# and "el 2" is a date.
NUMBERED: Mapping[str, tuple[str, ...]] = {"en": ("number",), "es": ("número", "nº", "n°")}
