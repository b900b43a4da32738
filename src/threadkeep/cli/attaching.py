"""Files that the user attaches to the next message in the terminal."""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from threadkeep.cli.progress import Progress
from threadkeep.client.client import Client
from threadkeep.client.sending import Sending
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.file import file_line
from threadkeep.wire.files import UploadedFileView

LARGE_BYTES = 4_000_000
"""From this size on, users want to see the upload's progress."""


class Attached:
    """The next message's files, already on the server."""

    def __init__(self, client: Client, show_line: Callable[[str], None]) -> None:
        self._client = client
        self._show_line = show_line
        self.files: list[UploadedFileView] = []

    async def add(self, typed: str) -> None:
        """Uploads the files whose paths were typed; without any, lists the attached ones."""
        if not typed:
            self.list()
            return
        try:
            paths = split_paths(typed)
        except ValueError as exc:
            self._show_line(f"Error: can't read the path ({str(exc).lower()}): {typed}")
            return
        for path in paths:
            await self._add(path)

    def remove(self, typed: str) -> None:
        """Removes files by their numbers; without any, all of them."""
        numbers = {int(word) for word in typed.split() if word.isdecimal()}
        unknown = [word for word in typed.split() if word not in map(str, range(1, len(self.files) + 1))]
        if unknown:
            self._show_line(f"Error: no attached file has number {unknown[0]}; /file lists them.")
            return
        self.files = [file for at, file in enumerate(self.files, 1) if numbers and at not in numbers]
        self.list()

    def list(self) -> None:
        """Lists the attached files."""
        if not self.files:
            self._show_line("(no files attached)")
        for number, file in enumerate(self.files, 1):
            self._show_line(f"{number} {file_line(file.file_name, file.media_type, file.size)}")

    def lines(self) -> Iterator[str]:
        """The attached files, as shown beside a message."""
        return (file_line(file.file_name, file.media_type, file.size) for file in self.files)

    async def _add(self, path: Path) -> None:
        progress = Progress("Uploading")

        def on_progress(sending: Sending) -> None:
            if sending.size >= LARGE_BYTES:
                progress.show(sending.sent, sending.size)

        try:
            file = await self._client.upload_file(path, on_progress=on_progress)
        except ThreadkeepError as exc:
            progress.end()
            self._show_line(f"Error: {exc.message}")
        except OSError as exc:
            self._show_line(f"Error: {path}: {exc.strerror or exc}")
        else:
            progress.end()
            self.files.append(file)
            self._show_line(f"{len(self.files)} {file_line(file.file_name, file.media_type, file.size)}")


def split_paths(typed: str) -> Sequence[Path]:
    """Paths as a shell would read them; a single one with spaces needs no quotes."""
    if (whole := Path(typed).expanduser()).is_file():
        return [whole]
    is_posix = os.name == "posix"  # elsewhere a backslash separates folders
    words = shlex.split(typed, posix=is_posix)
    return [Path(word if is_posix else word.strip("\"'")).expanduser() for word in words]
