"""Views of documents and search results."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.document import Chunk, Document, DocumentStatus
from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.ports.retriever import Hit
from threadkeep.wire.view import CompleteListView, CreatedAt, Id, OwnId, UpdatedAt, View, rfc3339


class DocumentView(View, frozen=True, kw_only=True):
    """A document: `ready` to search, still `processing`, or `failed` with the reason."""

    id: OwnId
    agent_id: Annotated[Id, Meta(description="The agent that searches it.")]
    file_name: Annotated[str, Meta(description="The name of the uploaded file.")]
    media_type: Annotated[str, Meta(description="What kind of file it is, detected from its content.")]
    size: Annotated[int, Meta(description="How many bytes the file has.")]
    status: Annotated[
        DocumentStatus, Meta(description="Whether it can be searched: `processing`, `ready` or `failed`.")
    ]
    progress: Annotated[float, Meta(description="Processing progress, from 0 to 1.")]
    chunk_count: Annotated[int, Meta(description="How many passages it was split into; 0 until it is ready.")]
    error: Annotated[str | None, Meta(description="Why it failed, if it did; `…/retry` processes it again.")]
    created_at: CreatedAt
    updated_at: UpdatedAt


class DocumentsView(View, frozen=True, kw_only=True):
    """The documents created from the files; a file that was already added returns its existing document."""

    items: Annotated[
        Sequence[DocumentView], Meta(description="A document for each file, in the order of the files.")
    ]


class HitView(View, frozen=True, kw_only=True):
    """A matching passage of a document."""

    chunk_id: Annotated[str, Meta(description="The passage's id, which citations have too.")]
    document_id: Annotated[Id, Meta(description="The document that the passage is from.")]
    source: Annotated[str, Meta(description="The name of the document's file.")]
    page: Annotated[
        int | None, Meta(description="The page that it is on, counted from 1, if there are pages.")
    ]
    heading: Annotated[str | None, Meta(description="The heading above the passage, if there is one.")]
    text: Annotated[str, Meta(description="The passage as the model would read it.")]
    snippet: Annotated[str, Meta(description="The text for people: without the marks of Markdown.")]
    score: Annotated[float, Meta(description="How well it matches, from 0 to 1.")]


class PassageView(View, frozen=True, kw_only=True):
    """A passage of a document; `chunkId` is the one that search results and citations have."""

    chunk_id: Annotated[str, Meta(description="The passage's id, as in search results and citations.")]
    position: Annotated[int, Meta(description="Its number in the document, counted from 0.")]
    page: Annotated[
        int | None, Meta(description="The page that it is on, counted from 1, if there are pages.")
    ]
    heading: Annotated[str | None, Meta(description="The heading above the passage, if there is one.")]
    text: Annotated[str, Meta(description="The passage as the model would read it.")]


class PassagesView(View, frozen=True, kw_only=True):
    """Some passages of a document, in order, and how many it has."""

    items: Annotated[Sequence[PassageView], Meta(description="The passages, in the order of the document.")]
    total: Annotated[int, Meta(description="How many passages the document has in all.")]


class HitsView(CompleteListView, frozen=True, kw_only=True):
    """The matches, best first."""

    items: Annotated[Sequence[HitView], Meta(description="The matching passages, the best first.")]
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
