"""Threadkeep whose log writer rests longer or shorter than usual.

python -m bench.resting MOST_REST_S REST_PER_OTHER_TURN serve …
"""

import sys

from threadkeep.cli import main
from threadkeep.log import writer

if __name__ == "__main__":
    writer.MOST_REST_S, writer.REST_PER_OTHER_TURN = map(float, sys.argv[1:3])
    raise SystemExit(main(sys.argv[3:]))
