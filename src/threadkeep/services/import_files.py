"""The files beside an export, each of which must be what its hash says."""

from threadkeep.domain.document import Document
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.payload import Payload, content_hash
from threadkeep.engine.large_values import MOST_FILE_BYTES
from threadkeep.ports.document_files import DocumentFiles
from threadkeep.ports.exchange import ImportSource
from threadkeep.services.exports import payload_name


def payload_content(source: ImportSource, payload: Payload) -> bytes:
    """The content of a payload."""
    file = source.open(payload_name(payload))
    if file is None:
        raise InvalidRequest(f"the content of payload {payload.id} is not in the export")
    with file:
        content = file.read(MOST_FILE_BYTES + 1)
    if len(content) != payload.size or content_hash(content) != payload.sha256:
        raise InvalidRequest(f"the content of payload {payload.id} is damaged or too large")
    return content


async def keep_document(source: ImportSource, name: str, document: Document, files: DocumentFiles) -> None:
    """Keeps the file of a document, which has this name in the export."""
    file = source.open(name)
    if file is None:
        raise InvalidRequest("its file is not in the export")
    with file:
        kept = await files.keep(document.agent_id, document.id, file, most=document.size)
    if kept != (document.size, document.sha256):
        await files.remove(document.agent_id, document.id)
        raise InvalidRequest("its file is damaged")
