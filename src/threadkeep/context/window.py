"""Which of the latest messages a model receives: a window whose start moves as rarely as possible.

If it moved by one message each turn, every request would begin differently, and no provider's prompt cache
would ever hit. So it stays, and when it no longer fits, it moves by a large step.
"""

from collections.abc import Sequence

SMALLEST_STEPPED = 8
"""A smaller window simply slides: a step would leave it nearly empty."""

KEPT_PERCENT = 60


def window_start(seqs: Sequence[int], most: int, anchor: int | None) -> int:
    """Where the window starts in the path's latest messages, given by their numbers, oldest first.

    `anchor` is the number at which the previous window started; `most` is how many messages fit (0 = any).
    """
    count = len(seqs)
    slides = 0 < most < SMALLEST_STEPPED
    if anchor is None or slides:
        return max(count - most, 0) if most else 0
    start = next((at for at, seq in enumerate(seqs) if seq >= anchor), count)
    # If the first message is after the anchor, more messages are between them than fit.
    fits = not most or (count - start <= most and (start > 0 or count < most or seqs[0] == anchor))
    return start if fits else max(count - most * KEPT_PERCENT // 100, 0)


def start_that_fits(sizes: Sequence[int], asked: int, room: int) -> int:
    """Where to start so that the messages, given by their tokens, fit: at the first, or after a large step.

    The message at `asked` always stays.
    """
    if sum(sizes) <= room:
        return 0
    left = room * KEPT_PERCENT // 100 - sizes[asked]
    for at in range(len(sizes) - 1, -1, -1):
        if at != asked:
            left -= sizes[at]
            if left < 0:
                return at + 1
    return 0
