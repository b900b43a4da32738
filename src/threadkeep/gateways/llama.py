"""llama.cpp in this process: finds a model's file, loads it and replies, all blocking."""

import os
import platform
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadkeep.ports.gateway import GatewayError
from threadkeep.weights import DEMONSTRATION, weights_folder

_ERRORS_ONLY = 1
_BATCH_TOKENS = 64  # a prompt can be stopped between two batches; larger ones aren't faster on one thread
_PROMPT_CACHE_MIB = 128  # other conversations' prompts, so that alternating doesn't reread them


class Llama:
    """A loaded model. Replies to one request at a time."""

    def __init__(self, server: Any) -> None:
        self._server: Any = server

    def chat(self, body: bytes, take: Callable[[bytes], bool]) -> None:
        """Completes a chat in chunks of JSON, until `take` returns true. Blocks, without the GIL."""
        self._server.handle_chat_completions(body, take)

    def close(self) -> None:
        """Frees the model."""
        self._server = None


def demonstration_weights() -> Path:
    """The demonstration model's file, in a package whose code is never run."""
    folder = weights_folder(DEMONSTRATION.package)
    for file in folder.glob("*.gguf") if folder else ():
        return file
    raise GatewayError(
        "No model is configured. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or run `threadkeep demo` for the "
        "demonstration model."
    )


def open_llama(path: Path, *, threads: int, window: int) -> Llama:
    """Loads a model that reads and writes at most `window` tokens in one go."""
    _read_through(path)
    library = _library(threads)
    with _nobody_can_call() as address:
        params = library.CommonParams()
        params.model.path = str(path)
        params.n_ctx = window
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_ram_mib = _PROMPT_CACHE_MIB
        params.verbosity = _ERRORS_ONLY
        params.hostnames = [address]
        params.n_threads_http = 1
        params.endpoint_slots = params.ui = False
        # The library holds the GIL while it loads, so skip whatever can be skipped: the search for settings
        # that fit the memory, the trial run, the second copy of the weights in another layout.
        params.fit_params = params.warmup = False
        params.no_extra_bufts = True
        params.endpoint_metrics = True
        try:
            server = library.Server(params)
        except (RuntimeError, ValueError, MemoryError) as exc:
            raise GatewayError(
                f"Couldn't load {path.name}: it is damaged, too large for this machine's memory, or not "
                "supported by this version of xllamacpp."
            ) from exc
    # Answers once the library's loop runs: freed before that, it would wait for the loop's end forever.
    server.handle_metrics()
    return Llama(server)


def _read_through(path: Path) -> None:
    """Reads the file here, where it blocks nobody else, so that the library finds it in memory."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise GatewayError(f"{path} is not a GGUF file.")
            block = bytearray(1 << 20)
            while file.readinto(block):
                pass
    except OSError as exc:
        raise GatewayError(f"Couldn't read the model file {path}: {exc.strerror}.") from exc


def _library(threads: int) -> Any:
    """Imports xllamacpp, which takes 100 MB of address space and only this gateway needs."""
    _check_processor()
    if threads > 1:
        # Otherwise its threads busy-wait for each other. Read once, at import.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp  # noqa: PLC0415
    except ModuleNotFoundError as exc:
        raise GatewayError(
            "The local gateway requires the extra `local`: `threadkeep doctor` says how to add it."
        ) from exc
    except ImportError as exc:
        hint = " On Debian and Ubuntu: apt install libgomp1." if "libgomp" in str(exc) else ""
        raise GatewayError(f"Couldn't load xllamacpp: {exc}.{hint}") from exc
    return xllamacpp


def _check_processor() -> None:
    """The library would crash the process on a processor that lacks its instructions."""
    described = Path("/proc/cpuinfo")
    if platform.machine() == "x86_64" and described.exists() and " avx2" not in described.read_text():
        raise GatewayError("The local gateway requires a processor with AVX2, which this one lacks.")


@contextmanager
def _nobody_can_call() -> Generator[str]:
    """An address for the library's own HTTP server, which can't be disabled: deleted once it listens."""
    with tempfile.TemporaryDirectory(prefix="tk-") as folder:
        yield str(Path(folder) / "llama.sock")
