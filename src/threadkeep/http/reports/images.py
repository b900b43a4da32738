"""Images of a report. They are embedded in the document, which fetches nothing; their size is limited."""

import base64
from collections.abc import Mapping

from threadkeep.domain.file import JPEG, PNG, WEBP, is_image
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import FOR_MODEL, PREVIEW
from threadkeep.http.reports.text import file_parts
from threadkeep.services.files import Files
from threadkeep.services.reports import QuestionAndReply

MOST_IMAGE_BYTES = 20 * 1024 * 1024

# An import may contain anything in their place: only real images are shown.
_MAGIC = {b"\x89PNG\r\n\x1a\n": PNG, b"\xff\xd8\xff": JPEG, b"RIFF": WEBP}


class ReportImages:
    """The images of one report: as models see them while there is room, then as previews, then none."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._left = MOST_IMAGE_BYTES
        self._forms = (FOR_MODEL, PREVIEW)

    async def of(self, pair: QuestionAndReply) -> Mapping[PayloadId, str]:
        """The images of a pair as data URIs, by the ids of their files."""
        found: dict[PayloadId, str] = {}
        for message in filter(None, (pair.asked, pair.reply)):
            for file in file_parts(message):
                if is_image(file.media_type) and (image := await self._image(message, file)):
                    found[file.file_id] = image
        return found

    async def _image(self, message: Message, file: FilePart) -> str | None:
        for form in self._forms:
            ref = file.refs.get(form)
            content = await self._files.content(message, ref) if ref else None
            media_type = _media_type(content) if content else None
            if content is None or media_type is None:
                continue
            if len(content) <= self._left:
                self._left -= len(content)
                return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
            self._forms = tuple(it for it in self._forms if it != form)  # what is larger is not tried again
        return None


def _media_type(content: bytes) -> str | None:
    return next((it for magic, it in _MAGIC.items() if content.startswith(magic)), None)
