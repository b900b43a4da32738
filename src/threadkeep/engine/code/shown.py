"""What the program itself has shown already: said again by a later run, it is not shown twice."""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from threadkeep.domain.events import EventBody, Notice, Retrieval, Text, Thought
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import storable
from threadkeep.engine.code.codes import AGENT_NOTICE
from threadkeep.wire.programs import HitItem, HitsItem, NoticeItem, OutputItem, TextItem, ThoughtItem

MOST_NOTICE_CHARACTERS = 500


class ShownOutput:
    """The program's own output in the log, in order. Pieces of text may be cut differently this time."""

    def __init__(self, shown: Iterable[EventBody]) -> None:
        self._left = deque(shown)
        self.has_differed = False
        """Whether a later run has said something else."""

    @property
    def is_complete(self) -> bool:
        """Whether a later run has said all of it."""
        return not self._left

    def new(self, body: EventBody) -> EventBody | None:
        """What of an output is not shown yet, if anything."""
        while self._left:
            next_ = self._left[0]
            if not isinstance(body, Text | Thought):
                return None if self._take(next_ == body) else body
            if type(next_) is not type(body) or not isinstance(next_, Text | Thought):
                self._take(False)
                return body
            if next_.text.startswith(body.text):
                self._shorten(next_, len(body.text))
                return None
            if not self._take(body.text.startswith(next_.text)):
                return body
            body = replace(body, text=body.text[len(next_.text) :])
        return body

    def _take(self, is_same: bool) -> bool:
        """Passes the next one over; once something differs, nothing is compared any more."""
        if is_same:
            self._left.popleft()
        else:
            self._left.clear()
            self.has_differed = True
        return is_same

    def _shorten(self, piece: Text | Thought, by: int) -> None:
        if by == len(piece.text):
            self._left.popleft()
        else:
            self._left[0] = replace(piece, text=piece.text[by:])


def body_of(item: OutputItem) -> EventBody | None:
    """What is said, as the log has it; None for files and progress, and for what is empty."""
    match item:
        case TextItem(text):
            return Text(storable(text))
        case ThoughtItem(text):
            return Thought(storable(text))
        case NoticeItem(text):
            return Notice(AGENT_NOTICE, storable(text)[:MOST_NOTICE_CHARACTERS])
        case HitsItem(hits, query) if hits:
            return Retrieval(storable(query), tuple(map(_hit, hits)))
        case _:
            return None


def _hit(item: HitItem) -> RetrievalHit:
    return RetrievalHit(
        source=storable(item.source),
        text=storable(item.text),
        score=item.score,
        chunk_id=item.chunk_id or None,
        document_id=item.document_id or None,
        page=item.page,
    )
