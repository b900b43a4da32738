"""Splits sections into chunks: at the ends of paragraphs or sentences, never across a page or a heading."""

import re
from collections.abc import Iterable, Iterator

from threadkeep.domain.document import Chunk
from threadkeep.domain.text import is_blank
from threadkeep.retrieval.extract import Section

# About 250 tokens, which small embedding models read at once; a Chinese character says as much as two or
# three Latin letters.
MOST_WEIGHT = 1000
DENSE_WEIGHT = 2.5

_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•#|]|\d+[.)、]|第[一二三四五六七八九十百零\d]+[条章节款]))")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；…])|\n")
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3000-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]"
)


def split(sections: Iterable[Section]) -> Iterator[tuple[Chunk, float]]:
    """Chunks in order, each with how much of the file is read by then."""
    position = 0
    for section in _joined(sections):
        for text in _packed(section.text):
            yield Chunk(position, text, section.page, section.heading), section.progress
            position += 1


def _joined(sections: Iterable[Section]) -> Iterator[Section]:
    """Joins neighbours under one heading on one page, while short."""
    waiting: Section | None = None
    for section in sections:
        if waiting is None:
            waiting = section
        elif (waiting.page, waiting.heading) == (section.page, section.heading) and len(
            waiting.text
        ) < 20_000:
            waiting = Section(
                f"{waiting.text}\n\n{section.text}", section.page, section.heading, section.progress
            )
        else:
            yield waiting
            waiting = section
    if waiting is not None:
        yield waiting


def _packed(text: str) -> Iterator[str]:
    """Packs as many pieces as fit into each chunk."""
    kept: list[str] = []
    weight = 0.0
    for piece in _pieces(text):
        size = _weight(piece)
        if kept and weight + size > MOST_WEIGHT:
            yield "\n".join(kept)
            kept, weight = [], 0.0
        kept.append(piece)
        weight += size
    if kept:
        yield "\n".join(kept)


def _pieces(text: str) -> Iterator[str]:
    """Paragraphs; the sentences of one that is too long, and the parts of a sentence that is."""
    for paragraph in _PARAGRAPH.split(text):
        if _weight(paragraph) <= MOST_WEIGHT:
            pieces = [paragraph]
        else:
            pieces = [part for sentence in _SENTENCE.split(paragraph) for part in _cut(sentence)]
        yield from (piece.strip() for piece in pieces if not is_blank(piece))


def _cut(sentence: str) -> Iterator[str]:
    """Parts of a sentence, each light enough. Weighs again only what may become the next part."""
    at = 0
    while _weight(window := sentence[at : at + MOST_WEIGHT + 1]) > MOST_WEIGHT:
        most = int(MOST_WEIGHT / (DENSE_WEIGHT if _DENSE.search(window[:MOST_WEIGHT]) else 1))
        space = sentence.rfind(" ", at + most // 2, at + most)
        end = space if space > 0 else at + most
        yield sentence[at:end]
        at = end
    yield sentence[at:]


def _weight(text: str) -> float:
    return len(text) + (DENSE_WEIGHT - 1) * len(_DENSE.findall(text))
