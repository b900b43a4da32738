"""Records every scenario anew, or those named: `python -m tests.corpus agentx-turns`.

Look at the difference, then commit it.
"""

import asyncio
import sys

from tests.corpus.playing import RECORDED, SCENARIOS, play, recorded


def main(names: list[str]) -> None:
    """Writes the recordings."""
    RECORDED.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        recordings = asyncio.run(play(name))
        for old in recorded(name):
            (RECORDED / old).unlink()
        for file_name, text in recordings.items():
            (RECORDED / file_name).write_bytes(text.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
