"""The process that reads one file: little memory, little time, no network, and nothing to lose.

With the arguments PATH MEDIA_TYPE, it writes one JSON object per line.
"""

import json
import sys
from pathlib import Path

from threadkeep.confined.limits import limit_process
from threadkeep.ports.documents import ExtractionFailed
from threadkeep.retrieval.extract import extract
from threadkeep.retrieval.split import split
from threadkeep.search.terms import terms

MOST_MEMORY_BYTES = 512 * 1024**2
MOST_CPU_S = 90
MOST_CHUNKS = 200_000


def main(path: Path, media_type: str) -> None:
    """Writes the chunks of a file, then `done`, or why the file can't be read."""
    limit_process(memory_bytes=MOST_MEMORY_BYTES, cpu_s=MOST_CPU_S, written_bytes=0)
    try:
        for chunk, progress in split(extract(path, media_type)):
            if chunk.position >= MOST_CHUNKS:
                raise ExtractionFailed(f"The file is too long: it has more than {MOST_CHUNKS} chunks.")
            _print_line(
                position=chunk.position,
                text=chunk.text,
                page=chunk.page,
                heading=chunk.heading,
                terms=terms(f"{chunk.heading}\n{chunk.text}" if chunk.heading else chunk.text),
                progress=progress,
            )
        _print_line(done=True)
    except ExtractionFailed as exc:
        _print_line(failed=exc.message)
    except MemoryError:
        _print_line(failed="The file needs more memory than allowed.")
    except Exception as exc:  # noqa: BLE001 - hostile files break readers in undocumented ways
        _print_line(failed=f"The file can't be read: {type(exc).__name__}.")


def _print_line(**line: object) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    main(Path(sys.argv[1]), sys.argv[2])
