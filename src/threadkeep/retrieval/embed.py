"""The two embedders: the small bundled model, and any OpenAI-compatible endpoint."""

import asyncio
import base64
import os
import re
import struct
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx2
import msgspec

from threadkeep.confined.process import end_process, start_confined
from threadkeep.ports.embedder import EmbedderError
from threadkeep.weights import EMBEDDING, weights_folder

if TYPE_CHECKING:
    from threadkeep.retrieval.minilm import MiniLM

QUERY_TIMEOUT_S = 3.0
TIMEOUT_S = 50.0
MOST_LINE_BYTES = 16 * 1024 * 1024

_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")


def bundled_embedder() -> "BundledEmbedder | None":
    """The small model, if its weights and dependencies are installed."""
    folder = weights_folder(EMBEDDING.package)
    return BundledEmbedder(folder / "model") if folder and EMBEDDING.can_run else None


class BundledEmbedder:
    """all-MiniLM-L6-v2. It handles English, and other Latin script a little.

    Queries are embedded in this process, since users wait for them; documents in another, at low priority.
    """

    name = "all-MiniLM-L6-v2"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loading: asyncio.Future[MiniLM] | None = None
        self._process: Process | None = None
        self._free = asyncio.Lock()

    def understands(self, text: str) -> bool:
        """Whether most of a text is in Latin script."""
        return 2 * len(_LATIN.findall(text)) > len(_LETTER.findall(text))

    async def embed_query(self, query: str) -> bytes:
        """The vector of one short text."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_load, self._folder))
        model = await asyncio.shield(self._loading)
        return await asyncio.to_thread(lambda: model.embed([query])[0].astype("<f2").tobytes())

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of many texts, computed in a separate process."""
        async with self._free:
            process = self._process
            if process is None or process.returncode is not None:
                process = self._process = await _start_process(self._folder)
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(msgspec.json.encode(list(texts)) + b"\n")
                await process.stdin.drain()
                async with asyncio.timeout(TIMEOUT_S):
                    line = await process.stdout.readline()
                return [base64.b64decode(vector) for vector in _decode_line(line)]
            except BaseException as exc:  # its late output would be taken for the next report
                await self._end_process()
                if isinstance(exc, OSError | TimeoutError | msgspec.DecodeError):
                    raise EmbedderError("The embedding process ended.") from exc
                raise

    async def close(self) -> None:
        """Ends the process that embeds documents."""
        await self._end_process()

    async def _end_process(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            await end_process(process)


_decode_line = msgspec.json.Decoder(list[str]).decode


def _load(folder: Path) -> "MiniLM":
    # With so small a model, more threads only wait for each other and slow turns; numpy reads this once.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from threadkeep.retrieval.minilm import MiniLM  # noqa: PLC0415 - an extra

    return MiniLM(folder)


async def _start_process(folder: Path) -> Process:
    return await start_confined(
        "threadkeep.retrieval.embedding_process",
        str(folder),
        reads=[folder],
        stdin=PIPE,
        limit=MOST_LINE_BYTES,
    )


class _Embedding(msgspec.Struct):
    index: int
    embedding: Annotated[list[float], msgspec.Meta(min_length=1)]


class _Response(msgspec.Struct):
    data: list[_Embedding]


_decode_response = msgspec.json.Decoder(_Response).decode


class EndpointEmbedder:
    """An OpenAI-compatible `/v1/embeddings`."""

    def __init__(self, url: str, api_key: str | None, model: str) -> None:
        self.name = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._url = f"{url.rstrip('/')}/embeddings"
        self._client = httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S)

    def understands(self, text: str) -> bool:
        """Always: the operator who configures a model knows the documents' languages."""
        return True

    async def embed_query(self, query: str) -> bytes:
        """The vector of one short text, with a shorter timeout than documents."""
        try:
            async with asyncio.timeout(QUERY_TIMEOUT_S):
                return (await self.embed([query]))[0]
        except TimeoutError as exc:
            raise EmbedderError("The embedding server didn't respond in time.") from exc

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of some texts, in one request."""
        try:
            response = await self._client.post(
                self._url, json={"model": self.name, "input": list(texts), "encoding_format": "float"}
            )
        except httpx2.HTTPError as exc:
            raise EmbedderError("Couldn't connect to the embedding server.") from exc
        if response.status_code != 200:
            raise EmbedderError(f"The embedding server returned status {response.status_code}.")
        try:
            found = sorted(_decode_response(response.content).data, key=lambda item: item.index)
        except msgspec.DecodeError as exc:
            raise EmbedderError("The embedding server's response couldn't be parsed.") from exc
        if [item.index for item in found] != list(range(len(texts))):
            raise EmbedderError("The embedding server's response doesn't match the request.")
        return [_unit(item.embedding) for item in found]

    async def close(self) -> None:
        """Closes connections."""
        await self._client.aclose()


def _unit(vector: Sequence[float]) -> bytes:
    """A vector of length 1, as 16-bit floats."""
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return struct.pack(f"<{len(vector)}e", *(value / length for value in vector))
