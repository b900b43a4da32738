"""Views of documents and search results."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.document import Chunk, Document, DocumentStatus
from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.ports.retriever import Hit
from threadkeep.wire.view import Id, Time, View, rfc3339


class DocumentView(View, frozen=True, kw_only=True):
    """A document: `ready` to search, still `processing`, or `failed` with the reason."""

    id: Id
    agent_id: Id
    file_name: str
    media_type: str
    size: int
    status: DocumentStatus
    progress: Annotated[float, Meta(description="Processing progress, from 0 to 1.")]
    chunk_count: int
    error: str | None
    created_at: Time
    updated_at: Time


class DocumentsView(View, frozen=True, kw_only=True):
    """The documents created from the files; a file that was already added returns its existing document."""

    items: Sequence[DocumentView]


class HitView(View, frozen=True, kw_only=True):
    """A matching passage of a document."""

    chunk_id: str
    document_id: Id
    source: Annotated[str, Meta(description="The file's name.")]
    page: int | None
    heading: str | None
    text: str
    snippet: Annotated[str, Meta(description="The text for people: without the marks of Markdown.")]
    score: Annotated[float, Meta(description="From 0 to 1.")]


class PassageView(View, frozen=True, kw_only=True):
    """A passage of a document; `chunkId` is the one that search results and citations have."""

    chunk_id: str
    position: int
    page: int | None
    heading: str | None
    text: str


class PassagesView(View, frozen=True, kw_only=True):
    """Some passages of a document, in order, and how many it has."""

    items: Sequence[PassageView]
    total: int


class HitsView(View, frozen=True, kw_only=True):
    """The matches, best first."""

    items: Sequence[HitView]
    notice: Annotated[str | None, Meta(description="What the search had to do without.")]


def document_view(document: Document) -> DocumentView:
    """A document as its agent's owner sees it."""
    return DocumentView(
        id=document.id,
        agent_id=document.agent_id,
        file_name=document.file_name,
        media_type=document.media_type,
        size=document.size,
        status=document.status,
        progress=document.progress,
        chunk_count=document.chunk_count,
        error=document.error,
        created_at=rfc3339(document.created_at),
        updated_at=rfc3339(document.updated_at),
    )


def passages_view(document: Document, chunks: Sequence[Chunk]) -> PassagesView:
    """Some passages of a document."""
    items = [
        PassageView(
            chunk_id=f"{document.id}:{chunk.position}",
            position=chunk.position,
            page=chunk.page,
            heading=chunk.heading,
            text=chunk.text,
        )
        for chunk in chunks
    ]
    return PassagesView(items=items, total=document.chunk_count)


def hit_view(hit: Hit) -> HitView:
    """A matching passage of a document."""
    return HitView(
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        source=hit.file_name,
        page=hit.page,
        heading=hit.heading,
        text=hit.text,
        snippet=plain_text(hit.text),
        score=hit.score,
    )
