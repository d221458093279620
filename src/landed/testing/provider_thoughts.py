"""What a scripted model thinks, sealed as the services seal it, so that a change is noticed."""

import base64
import hashlib
from dataclasses import dataclass
from typing import Literal

_WORD = "sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A thought; `form` is how much of it is shown: all of it, its seal alone, or a black bar.

    Chat Completions has no seal: there a thought is words that nobody has to send back. Responses
    shows a thought as a summary, and knows no black bar.
    """

    text: str
    form: Literal["shown", "omitted", "redacted"] = "shown"

    @property
    def shown(self) -> str:
        """What can be read of it."""
        return self.text if self.form == "shown" else ""

    @property
    def seal(self) -> str:
        """What only the service reads: the signature, or the encrypted thought."""
        hidden = base64.b64encode(self.text.encode()).decode()
        return f"{_WORD}:{hidden}:{_digest(hidden)}"


def unsealed(seal: object) -> str | None:
    """Return the thought that was sealed; None where that is no seal, or not as it was."""
    word, _, rest = str(seal).partition(":")
    hidden, _, digest = rest.partition(":")
    if word != _WORD or digest != _digest(hidden):
        return None
    return base64.b64decode(hidden).decode()


def _digest(hidden: str) -> str:
    return hashlib.sha256(hidden.encode()).hexdigest()[:12]
