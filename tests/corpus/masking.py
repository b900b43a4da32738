"""Replaces what differs from run to run: ids, times, durations, tokens. All else stays as it was sent.

Equal ids stay equal: the first one in a file becomes `id-1`. Times keep their spelling, with zeros for
digits. They get no numbers, because two events may or may not happen in the same millisecond.
"""

import re
from collections.abc import Callable

_DIGIT = re.compile(r"[0-9]")
_NUMBERED = {
    "id": re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
    "key": re.compile(r"tk_[\w-]{43}"),
    "key-prefix": re.compile(r"(?<=\"prefix\":\")tk_[\w-]+"),
    "access-token": re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"),
    "token": re.compile(r"(?<![\w-])[A-Za-z0-9_-]{43}(?![\w-])"),
    "installation": re.compile(r"(?<=__Host-threadkeep-)[0-9a-f]{8}(?==)"),  # in the name of a cookie
    "run": re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])"),
}
_CURSOR = re.compile(r'"nextCursor":"([\w-]+)"')
_ZEROED = (
    re.compile(r"(?<!\d)20\d\d-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?)?"),  # dates and times
    re.compile(r"(?<!\d)1[6-9]\d{11}(?!\d)"),  # milliseconds since 1970
    re.compile(
        r"(?<=_at\":)1[6-9]\d{8}(?!\d)|(?<=\"created\":)1[6-9]\d{8}(?!\d)"
    ),  # seconds, as OpenAI has them
    re.compile(r"(?<=127\.0\.0\.1:)\d{2,5}"),  # ports
)
_DURATION = re.compile(r'(\\?"duration(?:_ms|Ms)\\?":)[0-9]+')
_REPORTED_DAY = re.compile(r"(?<!\d)\d{1,2} [JFMASOND][a-z]{2,8} 20\d\d(?:, \d\d:\d\d UTC)?")
_REPORTED_DURATION = re.compile(r"(?<=, )[0-9.]+ m?s(?=\\?\))")
_VERSION = re.compile(r'("version":"|threadkeep-version: |threadkeep/)\d+\.\d+[\w.+]*')
_REQUEST_ID = re.compile(r'(x-request-id: |"requestId":")[0-9a-f]{16}(?![0-9a-f])')


def mask(text: str) -> str:
    """The text of one recording without anything that changes from run to run."""
    for cursor in dict.fromkeys(_CURSOR.findall(text)):
        text = text.replace(cursor, "cursor")
    for name, pattern in _NUMBERED.items():
        text = pattern.sub(_numbering(name), text)
    for pattern in _ZEROED:
        text = pattern.sub(lambda found: _DIGIT.sub("0", found[0]), text)
    text = _DURATION.sub(r"\g<1>0", text)
    text = _REPORTED_DAY.sub("(day)", text)
    text = _REPORTED_DURATION.sub("0 ms", text)
    text = _VERSION.sub(r"\g<1>version", text)
    return _REQUEST_ID.sub(r"\g<1>request-id", text)


def _numbering(name: str) -> Callable[[re.Match[str]], str]:
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return (
            f"{name}-{numbers.setdefault(found[0].lower() if name == 'id' else found[0], len(numbers) + 1)}"
        )

    return number
