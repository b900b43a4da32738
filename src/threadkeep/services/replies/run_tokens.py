"""Tokens of programs' runs: with one, the program's own SDK calls models through us while the run lasts."""

import asyncio
import base64
import binascii
from dataclasses import dataclass
from uuid import UUID

from threadkeep.domain.errors import SecretKeyRequired, StorageRefused, Unauthenticated
from threadkeep.domain.ids import TurnId
from threadkeep.storage.secrets import SecretBox

MARK = "tkr_"
"""What each of them begins with, and no other credential."""

_PURPOSE = "run tokens"
_NUMBER_BYTES = 8
_NAMED_BYTES = 16 + 2 * _NUMBER_BYTES


@dataclass(frozen=True, slots=True)
class RunName:
    """Which run a token is of."""

    turn_id: TurnId
    fence: int
    run: int


def is_run_token(credential: str) -> bool:
    """Whether a credential claims to be a run's."""
    return credential.startswith(MARK)


class RunTokens:
    """Makes and reads the tokens. They aren't stored: any node with the secret key knows its own."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    async def make(self, turn_id: TurnId, fence: int, run: int) -> str | None:
        """A run's token; None where there is no secret key, and none can be made."""
        if self._box.sealing_key is None:
            try:
                await asyncio.to_thread(self._box.make_key)
            except (SecretKeyRequired, StorageRefused):
                return None
        named = b"".join([UUID(turn_id).bytes, _bytes(fence), _bytes(run)])
        signed = named + self._box.sign(_PURPOSE, named)
        return MARK + base64.urlsafe_b64encode(signed).rstrip(b"=").decode()

    def read(self, token: str) -> RunName:
        """The run that a token is of; Unauthenticated if it isn't one of ours."""
        text = token.removeprefix(MARK)
        try:
            signed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            signed = b""
        named, signature = signed[:_NAMED_BYTES], signed[_NAMED_BYTES:]
        if not is_run_token(token) or not self._box.has_signed(_PURPOSE, named, signature):
            raise Unauthenticated(
                "This isn't the token of a run. Inside a step, `turn.openai()` gives one, with the address."
            )
        numbers = named[16 : 16 + _NUMBER_BYTES], named[16 + _NUMBER_BYTES :]
        fence, run = (int.from_bytes(it, "big") for it in numbers)
        return RunName(TurnId(str(UUID(bytes=named[:16]))), fence, run)


def _bytes(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
