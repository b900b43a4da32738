"""Titles: one immediately from the first message, a better one from the model later."""

import re
from collections.abc import Sequence

from threadkeep.context.completion import Complete
from threadkeep.domain.parts import FilePart
from threadkeep.domain.text import is_blank

MOST_TITLE_CHARACTERS = 50
MOST_EXCERPT_CHARACTERS = 2_000
MOST_READ_CHARACTERS = 20_000
MOST_TITLE_TOKENS = 60

_MARKUP = re.compile(r"```.*?(?:```|$)|[#>*_`~|]+", re.DOTALL)
# Openings before the actual request.
_POLITE = re.compile(
    r"^(?:(?:请问|请帮我|请你|请|麻烦你|麻烦|帮我|帮忙|你好|您好|能不能|可以|hi|hello|hey|please|"
    r"can you|could you|would you|help me|i want to|i'd like to)[\s,，。!！:：]*)+",
    re.IGNORECASE,
)
_INSTRUCTION = (
    "Write a title for this conversation: at most 8 words or 20 Chinese characters, in the language of the "
    "conversation, without quotation marks, without a full stop. Answer with the title only."
)


def derive_title(content: str) -> str | None:
    """A title from the user's first message, without a model."""
    content = content[:MOST_READ_CHARACTERS]
    plain = " ".join(_MARKUP.sub(" ", content).split()) or " ".join(content.split())
    return _shortened(_POLITE.sub("", plain) or plain)


def title_of(content: str, files: Sequence[FilePart]) -> str | None:
    """A title from the first message: from its text, or from the names of its files."""
    return derive_title(content) or _shortened(", ".join(part.file_name for part in files))


async def ask_for_title(complete: Complete, asked: str, replied: str) -> str | None:
    """A title from the model; None if it returns none."""
    excerpt = f"User: {asked[:MOST_EXCERPT_CHARACTERS]}\n\nAssistant: {replied[:MOST_EXCERPT_CHARACTERS]}"
    reply = await complete(_INSTRUCTION, excerpt, max_tokens=MOST_TITLE_TOKENS)
    lines = [line.strip(" \t\"'“”‘’「」《》#*.。") for line in reply.splitlines()]
    return _shortened(next((line for line in lines if not is_blank(line)), ""))


def _shortened(text: str) -> str | None:
    if is_blank(text):
        return None
    if len(text) <= MOST_TITLE_CHARACTERS:
        return text
    cut = text[: MOST_TITLE_CHARACTERS - 1]
    # After a word, if one ends not far back; Chinese has no spaces.
    at_word = cut.rfind(" ")
    return (cut[:at_word] if at_word > MOST_TITLE_CHARACTERS // 2 else cut).rstrip() + "…"
