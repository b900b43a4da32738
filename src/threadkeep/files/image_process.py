"""The process that reads one image: little memory, little time, and nothing to lose.

With the arguments SOURCE FOLDER, it writes one JSON object.
"""

import json
import sys
from pathlib import Path

from threadkeep.confined.limits import limit_process
from threadkeep.domain.errors import UnsupportedFile
from threadkeep.files.images import Encoded, render

MOST_MEMORY_BYTES = 1280 * 1024**2
"""A WebP of 50 megapixels takes up to 910 MB of address space, anything else at most 530."""
MOST_CPU_S = 30
MOST_WRITTEN_BYTES = 8 * 1024**2


def main(source: Path, folder: Path) -> None:
    """Writes an image's renditions and reports what they are, or why there are none."""
    limit_process(memory_bytes=MOST_MEMORY_BYTES, cpu_s=MOST_CPU_S, written_bytes=MOST_WRITTEN_BYTES)
    sys.stdout.write(json.dumps(_report(source, folder)) + "\n")


def _report(source: Path, folder: Path) -> dict[str, object]:
    try:
        with source.open("rb") as file:
            found = render(file)
        model = _written(found.model, folder / "model")
        preview = _written(found.preview, folder / "preview")
    except UnsupportedFile as exc:
        return {"failed": exc.message}
    except MemoryError:
        return {"failed": "This image needs more memory than allowed."}
    except OSError as exc:
        return {"unavailable": f"Couldn't open or write a file: {exc.strerror}."}
    return {"width": found.width, "height": found.height, "model": model, "preview": preview}


def _written(image: Encoded, path: Path) -> dict[str, object]:
    path.write_bytes(image.content)
    return {
        "path": str(path),
        "media_type": image.media_type,
        "size": len(image.content),
        "width": image.width,
        "height": image.height,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
