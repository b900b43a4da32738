"""The files beside an export, each of which must be what its hash says."""

from pathlib import Path

from threadkeep.domain.document import Document
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.payload import Payload, content_hash
from threadkeep.engine.aside import MOST_FILE_BYTES
from threadkeep.ports.exchange import ImportSource
from threadkeep.services.document_files import keep_file
from threadkeep.services.exports import document_name, payload_name


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


def copy_document(source: ImportSource, document: Document, path: Path) -> None:
    """Puts a document's file into its place."""
    file = source.open(document_name(document))
    if file is None:
        raise InvalidRequest("its file is not in the export")
    with file:
        kept = keep_file(file, path, most=document.size)
    if kept != (document.size, document.sha256):
        path.unlink()
        raise InvalidRequest("its file is damaged")
