"""Imports as their users see them."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.import_run import ImportFailure, ImportRun, ImportStatus, SkipReason
from threadkeep.wire.view import Id, OwnId, Time, View, rfc3339, time_or_none


class ImportProblemView(View, frozen=True, kw_only=True):
    """Something that was left out, and why."""

    what: Annotated[str, Meta(description="The conversation, message or file that was left out.")]
    why: Annotated[str, Meta(description="What kept it from being imported, for people.")]
    reason: Annotated[SkipReason, Meta(description="The same as `why`, for programs to compare.")]


class ImportedConversationView(View, frozen=True, kw_only=True):
    """A conversation that was added."""

    id: Annotated[Id, Meta(description="The new conversation, as `GET /api/conversations/{id}` reads it.")]
    title: Annotated[str, Meta(description="The title that it had in the file.")]


class ImportErrorView(View, frozen=True, kw_only=True):
    """Why an import failed, like the error of a response."""

    code: Annotated[str, Meta(description="What happened, as a code that programs can compare.")]
    message: Annotated[str, Meta(description="What happened and what to do, for people.")]
    reason: Annotated[
        str | None,
        Meta(
            description="Of `UNSUPPORTED_IMPORT`: `not_an_export`, `empty`, `damaged`, `encrypted` or "
            "`too_large`."
        ),
    ]


class ImportView(View, frozen=True, kw_only=True):
    """An import: what it has done so far, or in all."""

    id: OwnId
    agent_id: Annotated[Id, Meta(description="The agent that the conversations belong to.")]
    file_name: Annotated[str, Meta(description="The name of the uploaded file.")]
    size: Annotated[int, Meta(description="How many bytes the uploaded file has.")]
    status: Annotated[
        ImportStatus,
        Meta(description="`INTERRUPTED`: its server ended. Import the file again; nothing is added twice."),
    ]
    found: Annotated[
        int | None, Meta(description="How many conversations the file has; null until they are counted.")
    ]
    done: Annotated[int, Meta(description="How many of them were looked at.")]
    imported: Annotated[int, Meta(description="How many conversations were added.")]
    already_there: Annotated[int, Meta(description="How many had been imported before.")]
    empty: Annotated[int, Meta(description="How many have no messages, and were skipped.")]
    left_out: Annotated[int, Meta(description="How many things couldn't be imported; `problems` says why.")]
    messages: Annotated[int, Meta(description="How many messages were added.")]
    files: Annotated[int, Meta(description="How many files of messages were added.")]
    problems: Annotated[
        Sequence[ImportProblemView], Meta(description="The first 50 things that were left out.")
    ]
    notes: Annotated[
        Sequence[str],
        Meta(description="What is different here, such as files without content; the first 50."),
    ]
    conversations: Annotated[
        Sequence[ImportedConversationView], Meta(description="Some that were added: the first 10.")
    ]
    error: Annotated[ImportErrorView | None, Meta(description="Why the whole import failed, if it did.")]
    started_at: Annotated[Time, Meta(description="When it began to read the file.")]
    ended_at: Annotated[Time | None, Meta(description="When it ended; null while it runs.")]


def import_view(run: ImportRun) -> ImportView:
    """An import as its user sees it."""
    progress = run.progress
    return ImportView(
        id=run.id,
        agent_id=run.agent_id,
        file_name=run.file_name,
        size=run.size,
        status=run.status,
        found=progress.found,
        done=progress.done,
        imported=progress.imported,
        already_there=progress.already_there,
        empty=progress.empty,
        left_out=progress.left_out,
        messages=progress.messages,
        files=progress.files,
        problems=[ImportProblemView(what=it.what, why=it.why, reason=it.reason) for it in progress.problems],
        notes=progress.notes,
        conversations=[ImportedConversationView(id=it.id, title=it.title) for it in progress.conversations],
        error=_error_view(run.failure) if run.failure else None,
        started_at=rfc3339(run.started_at),
        ended_at=time_or_none(run.ended_at),
    )


def _error_view(failure: ImportFailure) -> ImportErrorView:
    return ImportErrorView(code=failure.code, message=failure.message, reason=failure.reason)
