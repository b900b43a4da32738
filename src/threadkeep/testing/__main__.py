"""`python -m threadkeep.testing`: a scripted model in a separate process, for load tests."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Sequence

from threadkeep.testing.script import Pause, Reply, Say, SayTime, Step
from threadkeep.testing.scripted_model import ScriptedModel


def main(arguments: Sequence[str] | None = None) -> None:
    """Sends every request the same reply until the process is stopped; prints its address first."""
    options = _parse(arguments)
    piece: Step = SayTime() if options.time else Say(options.text)
    beat: Reply = [Pause(1 / options.rate), piece] if options.rate else [piece]
    model = ScriptedModel(otherwise=[*beat] * options.pieces, port=options.port, records=False)

    async def serve() -> None:
        await model.listen()
        sys.stdout.write(f"{model.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m threadkeep.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--pieces", type=int, default=20, help="how many pieces a reply has")
    parser.add_argument("--rate", type=float, default=0, help="pieces a second; 0 sends all at once")
    parser.add_argument("--text", default="word ", help="what each piece says")
    parser.add_argument("--time", action="store_true", help="each piece says when it was sent")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
