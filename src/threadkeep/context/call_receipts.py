"""Receipts of a program's model calls: what each model received that an earlier one did not."""

from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from threadkeep.context.estimates import estimate_request_tokens
from threadkeep.context.outputs import schema_text
from threadkeep.context.prompt import SYSTEM_PROMPT
from threadkeep.context.rendering import line_of, tools_text
from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.payload import text_hash
from threadkeep.domain.receipt import ComponentReceipt, Receipt, TurnReceipt
from threadkeep.domain.text import is_blank
from threadkeep.ports.gateway import ModelRequest

MOST_COMPARED = 8
"""How many earlier calls a new one is compared with: branches of a program take turns."""


class _Sent(NamedTuple):
    """The messages of an earlier call, by hash."""

    call: int
    segments: Sequence[str]


class CallReceipts:
    """Makes the receipts of one run; each names only what an earlier call didn't begin with, too."""

    def __init__(self, turn_id: TurnId, conversation_id: ConversationId) -> None:
        self._turn_id = turn_id
        self._conversation_id = conversation_id
        self._sent: deque[_Sent] = deque(maxlen=MOST_COMPARED)

    def receipt(
        self, call: int, model: str, request: ModelRequest, agents: Sequence[str] = ()
    ) -> TurnReceipt:
        """The receipt of the turn's call with this number, before its files are loaded; made inside of
        `agents`, if other agents run in the turn.
        """
        lines = [line_of(it) for it in request.messages]
        described = tools_text(request.tools) if request.tools else ""
        system = "" if is_blank(request.system) else request.system
        wanted = "" if request.output is None else schema_text(request.output)
        texts = {text_hash(it): it for it in (described, system, wanted, *lines) if it}
        hashes = [text_hash(it) for it in lines]
        shared = max(
            ((_common(it.segments, hashes), it.call) for it in self._sent if it.call < call), default=(0, 0)
        )
        count, shared_call = shared if shared[0] else (0, 0)
        self._sent.append(_Sent(call, hashes))
        components = [ComponentReceipt(SYSTEM_PROMPT, text_hash(system), len(system))] if system else []
        receipt = Receipt(
            model=model,
            components=tuple(components),
            message_ids=(),
            tools=tuple(it.name for it in request.tools),
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            zone="UTC",
            token_estimate=estimate_request_tokens(request),
            dropped_messages=0,
            tools_sha256=text_hash(described) if described else None,
            sha256=text_hash("\n".join((text_hash(described), text_hash(system), *hashes))),
            segments=tuple(hashes[count:]),
            cache_key=request.cache_key,
            output_sha256=text_hash(wanted) if wanted else None,
            shared_call=shared_call,
            shared=count,
            agents=tuple(agents),
        )
        return TurnReceipt(self._turn_id, self._conversation_id, receipt, texts, call)


def _common(earlier: Sequence[str], hashes: Sequence[str]) -> int:
    """How many messages two calls begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(earlier, hashes, strict=False)))
