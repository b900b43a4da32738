"""`threadkeep export`, `import` and `reassign`: moving data."""

import argparse
import asyncio
import sys
from pathlib import Path

from threadkeep.bootstrap import check_has_database, file_intake, opened_jobs_and_store, reading_store
from threadkeep.cli.commands import runs
from threadkeep.cli.feedback_lines import feedback_line
from threadkeep.cli.progress import Progress
from threadkeep.clock import system_clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.data_folder import UPLOADS
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import Message
from threadkeep.domain.user import LOCAL, User, UserRole, user_id
from threadkeep.exports.feedback import FeedbackExport
from threadkeep.exports.user_export import Export
from threadkeep.exports.writing import new_file, writing
from threadkeep.imports.confined import reading_file
from threadkeep.imports.report import ImportReport
from threadkeep.imports.user_import import Import
from threadkeep.mcp.personal import hand_over
from threadkeep.services.reassignment import reassign
from threadkeep.settings import Settings
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.prompt_files import FolderPromptFiles

MOST_LISTED = 20


def add_export(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _export)
    command.add_argument("file", type=Path, help="the file to create, for example alice.zip")
    command.add_argument("--user", help="the user to export (local, if sign-in is off)")
    command.add_argument(
        "--feedback",
        action="store_true",
        help="instead, ratings as JSON lines: on the user's agents, and on the user's own turns",
    )
    command.add_argument("--agent", help="with --feedback: only ratings of this agent's answers")


def add_import(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _import)
    command.add_argument("file", type=Path, help="a ZIP file, a folder or conversations.json")
    command.add_argument("--user", help="the user to import for (local, if sign-in is off)")
    command.add_argument(
        "--agent",
        help="agent for conversations from ChatGPT and Claude; created if missing (the default agent)",
    )


def add_reassign(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _reassign)
    command.add_argument("giver", help="the current owner, for example local")
    command.add_argument("receiver", help="the new owner")


def _export(settings: Settings, given: argparse.Namespace) -> int:
    owner = _whose(settings, given)
    if given.feedback:
        return asyncio.run(export_feedback(settings, owner, given.file, given.agent))
    if given.agent is not None:
        raise SettingsError("--agent goes with --feedback.")
    return asyncio.run(export_user(settings, owner, given.file))


def _import(settings: Settings, given: argparse.Namespace) -> int:
    owner = _whose(settings, given)
    if given.data is None:  # a folder that the user names may be new
        check_has_database(settings)
    return asyncio.run(import_file(settings, given.file, owner, given.agent))


def _reassign(settings: Settings, given: argparse.Namespace) -> int:
    check_has_database(settings)
    return asyncio.run(reassign_user(settings, user_id(given.giver), user_id(given.receiver)))


def _whose(settings: Settings, given: argparse.Namespace) -> UserId:
    if given.user is None and settings.signs_in:
        raise SettingsError("This server has sign-in. Name a user with --user.")
    return user_id(given.user or LOCAL)


async def export_user(settings: Settings, owner: UserId, file: Path) -> int:
    """Writes all data of a user to a file, even while a server runs; 0 if nothing was lost."""
    conversations = messages = 0
    lost: list[str] = []
    prompts, documents = FolderPromptFiles(settings.workspaces), FolderDocumentFiles(settings.workspaces)
    async with reading_store(settings) as store:
        export = Export(store, prompts, documents, owner, system_clock())
        with writing(file) as archive:
            with archive.lines() as put:
                async for record in export.records():
                    put(record)
                    conversations += isinstance(record, Conversation)
                    messages += isinstance(record, Message)
            async for name, content in export.contents():
                if content is None:
                    lost.append(name)
                else:
                    archive.add(name, content)
    print(f"{file}: {_count(conversations, 'conversation')}, {_count(messages, 'message')}.")
    _print_list(lost, "is missing from the data folder and from the export")
    return 1 if lost else 0


async def export_feedback(settings: Settings, owner: UserId, file: Path, agent: str | None) -> int:
    """Writes the feedback that a user may read to a file, even while a server runs."""
    # Without sign-in, everybody is the one user, who is an admin.
    user = User(owner, UserRole.USER if settings.signs_in else UserRole.ADMIN)
    count = requests = 0
    async with reading_store(settings) as store:
        with new_file(file) as lines:
            async for line in FeedbackExport(store, user).lines(agent):
                lines.write(feedback_line(line))
                count += 1
                requests += line.request is not None
    print(f"{file}: {_count(count, 'rating')}, {_count(requests, 'turn')} with what the model received.")
    return 0


async def import_file(settings: Settings, file: Path, owner: UserId, agent: str | None) -> int:
    """Imports a file for a user; 0 if nothing had to be left out."""
    progress = Progress(f"Importing {file.name}")
    prompts, documents = FolderPromptFiles(settings.workspaces), FolderDocumentFiles(settings.workspaces)
    async with opened_jobs_and_store(settings) as (jobs, store):
        taking = Import(store, jobs, prompts, documents, file_intake(settings), system_clock, User(owner))
        try:
            async with reading_file(file, settings.data / UPLOADS, progress.show) as source:
                await taking.take(source, agent)
        finally:
            progress.end()
            _summarise(taking.report)
    return 1 if taking.report.left_out else 0


async def reassign_user(settings: Settings, giver: UserId, receiver: UserId) -> int:
    """Moves everything from one user to another, and prints what that was."""
    # With SQLite, the lock on the data folder ensures that no server runs.
    alone = settings.on_sqlite
    async with opened_jobs_and_store(settings) as (_, store):
        moved = await reassign(store, giver, receiver, system_clock(), alone=alone)
    left = hand_over(settings.workspaces, giver, receiver)
    print(
        f"{giver} → {receiver}: {_count(moved.conversations, 'conversation')}, "
        f"{_count(moved.agents, 'agent')}, {_count(moved.briefings, 'briefing')}, "
        f"{_count(moved.memories, 'memory')}."
    )
    for conversation_id in moved.former_mains:
        print(
            f"Conversation {conversation_id} was the main conversation. {receiver} already has one with "
            "this agent, so it is now a regular conversation."
        )
    _print_list(
        [str(folder) for folder in left],
        f"was not moved: {receiver} already has a PromptX folder for that agent",
    )
    return 0


def _summarise(report: ImportReport) -> None:
    added = ", ".join(_count(number, noun) for noun, number in report.added.items()) or "nothing"
    there = f"; {report.there:,} already present" if report.there else ""
    empty = f"; {_count(report.empty, 'conversation')} without messages skipped" if report.empty else ""
    print(f"Added: {added}{there}{empty}.")
    for note in report.notes[:MOST_LISTED]:
        print(note)
    _print_list([f"{it.what}: {it.why}" for it in report.left_out], "", before="Left out: ")


def _print_list(things: list[str], what: str, before: str = "") -> None:
    """Prints what users should look at, but not an endless list."""
    for thing in things[:MOST_LISTED]:
        print(f"{before}{thing} {what}".rstrip(), file=sys.stderr)
    if len(things) > MOST_LISTED:
        print(f"… and {len(things) - MOST_LISTED:,} more.", file=sys.stderr)


def _count(number: int, noun: str) -> str:
    plural = "memories" if noun == "memory" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
