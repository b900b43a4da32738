"""Texts that somebody writes to keep us busy, or to break us: the one list of them."""

# Each is repeated to the length that is wanted; what stands last is added once, so that a search that has
# come all the way finds that it must begin again.
_REPEATED: dict[str, tuple[str, str]] = {
    "one long word": ("a", "ational"),
    "only consonants": ("b", "ational"),
    "only vowels": ("aeiou", "!"),
    "only y": ("y", "ing"),
    "doubled letters": ("ab", "ll"),
    "only spaces": (" ", "x"),
    "only tabs and line breaks": ("\n\t", "x"),
    "line breaks": ("\n", "x"),
    "carriage returns": ("\r", "x"),
    "ends of lines": ("\r\n\u2028", "x"),
    "unbreakable spaces": ("\u00a0\u2003", "x"),
    "nested brackets": ("[({", "x"),
    "square brackets": ("[", "!"),
    "balanced brackets": ("[]{}", "x"),
    "angles": ("<", "x"),
    "open tags": ("<system ", "\n"),
    "end tags": ("</a", "x"),
    "tags and comments": ("<system><!--", "x"),
    "quotes": ('"', "x"),
    "backslashes": ("\\", '"'),
    "quotes and backslashes": ('"\\', "x"),
    "backticks": ("`", "x"),
    "code fences": ("``` ", "x"),
    "headings": ("# ", "!"),
    "dots": (".", "x"),
    "sentences": ("a. ", "x"),
    "digits": ("1", "x"),
    "dashes": ("-", "x"),
    "slashes": ("/", "x"),
    "roles": ("user ", "x"),
    "references": ("@!thought://", "x"),
    "whole references": ("@!thought://a ", "x"),
    "politeness": ("please can you ", "x"),
    "comment openings": ("<!--", "x"),
    "escapes": ("%00", "x"),
    "places": (" - at `", "x"),
    "fields": ("field `", "x"),
    "ids": ('"id": ', "x"),
    "combining marks": ("\u0301\u0323", "a"),
    "marks after a letter": ("a\u0323\u0301\u0316\u0345", "!"),
    "variation selectors": ("\ufe0f", "x"),
    "right to left": ("\u202e\u05d0\u200f", "x"),
    "Hebrew with points": ("\u05d0\u05b7", "x"),
    "Arabic ligatures": ("\ufdfa", "x"),
    "Chinese": ("\u8fdd\u7ea6\u91d1", "x"),
    "Chinese stops": ("\u3002\uff01", "x"),
    "Korean letters": ("\u1100\u1161\u11a8", "x"),
    "Hindi": ("\u0939\u093f\u0928\u094d", "x"),
    "pictures": ("\U0001f468\u200d\U0001f469", "x"),
    "different words": ("", ""),
}  # fmt: skip
NAMES = tuple(_REPEATED)
# No database keeps these: who reads them must refuse or replace them.
_UNSTORABLE: dict[str, tuple[str, str]] = {
    "NUL": ("\0", "x"),
    "lone surrogates": ("\ud83d", "\udc00x"),
}
UNSTORABLE_NAMES = tuple(_UNSTORABLE)


def hostile_text(name: str, length: int) -> str:
    """The text of a name, with about so many characters."""
    if name == "different words":
        return " ".join(f"w{number:x}ing" for number in range(length // 8))
    unit, last = (_REPEATED | _UNSTORABLE)[name]
    return unit * (length // len(unit)) + last
