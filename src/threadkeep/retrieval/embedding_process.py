"""The process that embeds documents: reads a JSON list of texts per line, writes one of vectors.

Its argument is the folder of the weights.
"""

import base64
import json
import os
import sys
from pathlib import Path

from threadkeep.retrieval.minilm import MiniLM

TEXTS_AT_ONCE = 8


def main() -> None:
    """Reports line by line until the input ends."""
    os.nice(10)
    model = MiniLM(Path(sys.argv[1]))
    for line in sys.stdin.buffer:
        texts: list[str] = json.loads(line)
        vectors: list[str] = []
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            found = model.embed(texts[first : first + TEXTS_AT_ONCE]).astype("<f2")
            vectors += [base64.b64encode(vector.tobytes()).decode() for vector in found]
        sys.stdout.write(json.dumps(vectors) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
