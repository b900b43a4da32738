"""Imports of users over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.uploads import UploadedFiles
from threadkeep.wire.imports import ImportView, import_view
from threadkeep.wire.view import PageView


class ImportQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Where the conversations go."""

    agent_id: Annotated[
        str | None,
        Meta(description="The agent for the conversations; by default, the default agent."),
    ] = None


async def begin_import(request: RequestContext, *, files: UploadedFiles, query: ImportQuery) -> ImportView:
    """Import the conversations of an export from ChatGPT, Claude or Threadkeep: its ZIP file or its JSON.

    The response arrives when the file is received; the import continues in the background. Each conversation
    is imported completely or not at all, and importing a file again adds nothing twice. From a Threadkeep
    export, only conversations are imported; those with agents that you can't use here get `agentId`. You can
    run one import at a time. `THREADKEEP_MAX_IMPORT_BYTES` limits the file.
    """
    runs = request.services.import_runs
    agent = await runs.admit(request.user, query.agent_id)
    async with files.read(most_bytes=runs.exports.most_bytes) as uploads:
        if len(uploads) != 1:
            raise InvalidRequest("Send one file.", param="files")
        run = await runs.begin(request.user, agent, uploads[0].file_name, uploads[0].file)
    return import_view(run)


async def list_imports(request: RequestContext) -> PageView[ImportView]:
    """List your latest imports, newest first: at most 10."""
    runs = await request.services.import_runs.latest(request.user)
    return PageView(items=[import_view(run) for run in runs], next_cursor=None)


async def get_import(request: RequestContext, *, import_id: str) -> ImportView:
    """Follow an import: its progress, or its result. It changes about once a second."""
    return import_view(await request.services.import_runs.get(request.user, import_id))


async def stop_import(request: RequestContext, *, import_id: str) -> ImportView:
    """Stop an import after the conversation in progress. What is imported stays.

    The response may still say `RUNNING`: read the import again.
    """
    return import_view(await request.services.import_runs.stop(request.user, import_id))
