"""The process that inspects one PDF: little memory, little time, and nothing to lose.

With the argument SOURCE, it writes one JSON object.
"""

import json
import sys
from pathlib import Path
from typing import Any

from threadkeep.confined.limits import limit_process
from threadkeep.confined.pdf import open_pdf
from threadkeep.ports.documents import ExtractionFailed, PasswordRequired

MOST_MEMORY_BYTES = 512 * 1024**2
MOST_CPU_S = 20


def main(source: Path) -> None:
    """Reports the facts about a PDF, or why it can't be opened."""
    limit_process(memory_bytes=MOST_MEMORY_BYTES, cpu_s=MOST_CPU_S, written_bytes=0)
    sys.stdout.write(json.dumps(_report(source)) + "\n")


def _report(source: Path) -> dict[str, object]:
    try:
        pdf = open_pdf(source)
        return {"page_count": len(pdf), "encrypted": _is_encrypted(pdf)}
    except PasswordRequired:
        return {"encrypted": True, "needs_password": True}
    except ExtractionFailed as exc:
        return {"failed": exc.message}
    except MemoryError:
        return {"failed": "This PDF needs more memory than allowed."}
    except Exception:  # noqa: BLE001 - hostile files break readers in undocumented ways
        return {"failed": "This PDF is damaged."}


def _is_encrypted(pdf: Any) -> bool:
    import pypdfium2.raw as pdfium  # noqa: PLC0415 - an extra

    library: Any = pdfium
    return library.FPDF_GetSecurityHandlerRevision(pdf) >= 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
