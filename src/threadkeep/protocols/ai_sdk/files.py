"""Files in messages of AI SDK clients: accepted like any message's files."""

from collections.abc import Sequence
from io import BytesIO

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.parts import FilePart
from threadkeep.domain.user import User
from threadkeep.protocols.ai_sdk.decode import SentFile
from threadkeep.services.files import MOST_FILES_OF_A_MESSAGE, Files


async def take_in(files: Files, user: User, sent: Sequence[SentFile]) -> tuple[FilePart, ...]:
    """The files of a message in their order: new ones, once all are accepted, and those that we have."""
    if len(sent) > MOST_FILES_OF_A_MESSAGE:
        raise InvalidRequest(f"A message can have at most {MOST_FILES_OF_A_MESSAGE} files.", param="messages")
    new = [(it.name, BytesIO(it.content)) for it in sent if it.file_id is None]
    added = iter([file.part for file in await files.add(user, *new)] if new else ())
    known = iter(await files.parts(user, [it.file_id for it in sent if it.file_id is not None]))
    return tuple(next(added) if it.file_id is None else next(known) for it in sent)
