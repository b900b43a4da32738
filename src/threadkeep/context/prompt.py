"""Assembles a system prompt from texts: order, cleaning, and limits with markers for omissions."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from threadkeep.domain.events import Notice
from threadkeep.domain.payload import text_hash
from threadkeep.domain.text import is_blank
from threadkeep.ports.roles import Role

MOST_COMPONENT_CHARACTERS = 20_000
MOST_PROMPT_CHARACTERS = 100_000
LEAST_SHARE = 200
SYSTEM_PROMPT, ROLE, SUMMARY = "systemPrompt", "role", "summary"
USER_INSTRUCTIONS, INSTRUCTIONS = "userInstructions", "instructions"
USER_INSTRUCTIONS_HEADING = "The user wants every agent to know and do this:\n"
SUMMARY_HEADING = "[摘要 Summary]\n"

# Cleaning removes characters; this much still fills a component afterwards.
_CLEANED_AN_END = 2 * MOST_COMPONENT_CHARACTERS
_SEPARATOR = "\n\n"
_NEW_LINE = re.compile("\r\n?|[\x85\u2028\u2029]")
# Control characters except tab and line feed, characters that change the text's direction, and all other
# invisible ones: what people can't see when they read a file must not reach a model.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
# One selects a character's look; several in a row only hide something.
_SELECTORS = re.compile("([\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
# What models are trained to read as the frame around a message or a tool's result.
_MARKUP = re.compile(
    r"""<(\|[^<>|\n]{1,60}\|)>
    | <(/?(?:antml:)?(?:
            (?:system|developer|assistant|user|human|tools?|functions?)(?:[_-]\w{1,20})?|invoke|parameter
        )(?:\s[^<>\n]{0,200})?/?)>
    | \[(/?INST)\]
    | <<(/?SYS)>>""",
    re.IGNORECASE | re.VERBOSE,
)
_SPEAKER = re.compile(r"^([ \t]*(?:system|human|user|assistant|tool)[ \t]*):", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """A text that is to become a component; `unread` counts the characters skipped in its middle."""

    name: str
    text: str
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Component:
    """A named part of the system prompt; `left_out` counts the characters that did not fit."""

    name: str
    text: str
    left_out: int = 0

    @property
    def sha256(self) -> str:
        """Identifies the text by its content; receipts store each text once."""
        return text_hash(self.text)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt in its parts, and notices about it."""

    components: tuple[Component, ...]
    notices: tuple[Notice, ...] = ()


def assemble(sources: Iterable[Source], *, most: int = MOST_PROMPT_CHARACTERS) -> Prompt:
    """The components of these sources, in order, within the limit on their total length."""
    cleaned = [Source(it.name, clean(it.text), it.unread) for it in map(_with_ends, sources)]
    present = [source for source in cleaned if not is_blank(source.text)]
    room = most - len(_SEPARATOR) * max(len(present) - 1, 0)
    share = max(_share([_needed(source) for source in present], room), LEAST_SHARE)
    components = tuple(_cut(source, share) for source in present)
    return Prompt(components, tuple(_truncated(it) for it in components if it.left_out))


def joined(components: Iterable[Component]) -> str:
    """The components as the one text that a model receives."""
    return _SEPARATOR.join(component.text for component in components)


def role_guidance(role_id: str) -> str:
    """The instruction to activate a role, for models that can call tools."""
    return (
        f"Your role is `{role_id}`. Before your first answer in this conversation, activate it by calling "
        f'the tool `promptx_action` with {{"role": "{role_id}"}}, and be what it says from then on.'
    )


def role_in_force(role: Role) -> str:
    """The text of an activated role, whose call may have left the window since."""
    return (
        f"You have activated the role `{role.id}` in this conversation; be what it says. `promptx_action` "
        f"would change it.\n\n{role.text}"
    )


# Files rarely change, and every turn reads the same texts again.
@lru_cache(maxsize=256)
def clean(text: str) -> str:
    """A text without invisible characters, in which nothing looks like the frame around a message."""
    text = _NEW_LINE.sub("\n", text)
    text = _SELECTORS.sub(r"\1", _UNSEEN.sub("", text))
    text = _MARKUP.sub(lambda match: f"‹{next(filter(None, match.groups()))}›", text)
    return _SPEAKER.sub(r"\1：", text).strip("\n")


def _with_ends(source: Source) -> Source:
    """A source without the middle that no component has room for."""
    left_out = len(source.text) - 2 * _CLEANED_AN_END
    if left_out <= 0:
        return source
    ends = source.text[:_CLEANED_AN_END] + source.text[-_CLEANED_AN_END:]
    return Source(source.name, ends, source.unread + left_out)


def _share(lengths: Sequence[int], most: int) -> int:
    """How long a component may be so that all fit: the longest are cut first."""
    left = len(lengths)
    for length in sorted(min(length, MOST_COMPONENT_CHARACTERS) for length in lengths):
        if length * left > most:
            return most // left
        most -= length
        left -= 1
    return MOST_COMPONENT_CHARACTERS


def _needed(source: Source) -> int:
    mark = _mark(source.name, len(source.text) + source.unread) if source.unread else ""
    return len(source.text) + len(mark)


def _cut(source: Source, most: int) -> Component:
    """A component; if its source is too long, head and tail around a mark."""
    whole = len(source.text) + source.unread
    if not source.unread and whole <= most:
        return Component(source.name, source.text)
    kept = min(most - len(_mark(source.name, whole)), len(source.text))
    head, tail = kept - kept // 3, kept // 3
    text = source.text[:head] + _mark(source.name, whole - kept) + source.text[len(source.text) - tail :]
    return Component(source.name, text, whole - kept)


def _mark(name: str, missing: int) -> str:
    return f"\n[… {missing} characters of {name} left out …]\n"


def _truncated(component: Component) -> Notice:
    return Notice(
        "PROMPT_TRUNCATED", f"{component.name} is too long; {component.left_out} characters were left out."
    )
