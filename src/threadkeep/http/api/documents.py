"""Documents of an agent over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.uploads import UploadedFiles
from threadkeep.wire.documents import (
    DocumentsView,
    DocumentView,
    HitsView,
    PassagesView,
    document_view,
    hit_view,
    passages_view,
)
from threadkeep.wire.view import PageView


class DocumentSearchQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to search for; the agent's settings define the rest."""

    q: Annotated[
        str, Meta(min_length=1, max_length=2000, description="What to search for, at most 2,000 characters.")
    ]
    top_k: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(description="The most hits to return; by default, the agent's `retrievalTopK`."),
    ] = None
    threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="The lowest score of a hit; by default, the agent's `retrievalThreshold`."),
    ] = None


class PassageQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which passages to read."""

    from_position: Annotated[int, Meta(ge=0, le=2**62, description="The first passage, counted from 0.")] = 0
    limit: Annotated[int, Meta(ge=1, le=200, description="The most passages to return in one response.")] = 20


async def add_documents(request: RequestContext, *, agent_id: str, files: UploadedFiles) -> DocumentsView:
    """Upload one or more files (PDF, DOCX, HTML, Markdown, text, CSV) for an agent to search.

    If Threadkeep rejects one file, it accepts none.
    """
    documents = request.services.documents
    agent = await request.services.agents.get_open(request.user, agent_id)
    async with files.read() as uploads:
        if not uploads:
            raise InvalidRequest("The request contains no file.", param="files")
        kept = await documents.add(agent, *((it.file_name, it.file) for it in uploads))
    return DocumentsView(items=[document_view(document) for document in kept])


async def list_documents(
    request: RequestContext, *, agent_id: str, query: PageQuery
) -> PageView[DocumentView]:
    """List an agent's documents, newest first."""
    pager = Pager(request.cursors, request.user, f"documents {agent_id.lower()}", query)
    found = await request.services.documents.page(
        request.user, agent_id, before=pager.after(str), offset=pager.offset, limit=pager.fetch_limit
    )
    return pager.page(
        found, lambda document: document.id, lambda documents: [document_view(it) for it in documents]
    )


async def get_document(request: RequestContext, *, agent_id: str, document_id: str) -> DocumentView:
    """Read a document's status."""
    return document_view(await request.services.documents.get(request.user, agent_id, document_id))


async def list_passages(
    request: RequestContext, *, agent_id: str, document_id: str, query: PassageQuery
) -> PassagesView:
    """Read a document's text, passage by passage, from a position on."""
    document, chunks = await request.services.documents.passages(
        request.user, agent_id, document_id, first=query.from_position, limit=query.limit
    )
    return passages_view(document, chunks)


async def retry_document(request: RequestContext, *, agent_id: str, document_id: str) -> DocumentView:
    """Process a failed document again."""
    return document_view(await request.services.documents.retry(request.user, agent_id, document_id))


async def delete_document(request: RequestContext, *, agent_id: str, document_id: str) -> None:
    """Delete a document and remove it from search."""
    await request.services.documents.delete(request.user, agent_id, document_id)


async def search_documents(request: RequestContext, *, agent_id: str, query: DocumentSearchQuery) -> HitsView:
    """Search an agent's documents by keyword and by meaning."""
    found = await request.services.documents.search(
        request.user, agent_id, query.q, top_k=query.top_k, threshold=query.threshold
    )
    return HitsView(items=[hit_view(hit) for hit in found.hits], notice=found.notice)
