"""Which models accept files, by name: no provider's API reports it for all of them.

What the operator says comes first, then the table of known models, then what is usual in a model's family.
"""

import re
from base64 import b64encode
from collections.abc import Mapping

from threadkeep.domain.file import JPEG, PNG
from threadkeep.domain.image import ImageTokenRule
from threadkeep.gateways.endpoint import Endpoint, Taken
from threadkeep.gateways.known_models import known_models
from threadkeep.ports.gateway import DocumentBlock, ImageBlock, ModelRequest, TakenFiles

_WITH_IMAGES = re.compile(
    r"claude-(3|opus|sonnet|haiku|[4-9])|gpt-(4o|4\.|4-turbo|4-vision|[5-9])|chatgpt-4o|gemini"
    r"|(^|/)o(1|3|1-pro|3-pro|4-mini)(-\d|$)"
    r"|llava|bakllava|moondream|pixtral|mistral-(small-3|medium-3)|gemma-?[34]|llama-?(3\.2.*vision|4)"
    r"|qwen.*(vl|omni)|internvl|minicpm-v|phi-.*vision|grok-.*vision|grok-[4-9]|glm-4\.?\d?v|vision",
    re.IGNORECASE,
)
_CLAUDE_WITH_PDFS = re.compile(r"claude-(3-[57]|opus|sonnet|haiku|[4-9])", re.IGNORECASE)
_OPENAI_IN_PATCHES = re.compile(r"(gpt-(4\.1|[5-9]).*-(mini|nano))|o4-mini", re.IGNORECASE)


def files_of_claude(model: str, endpoint: Endpoint) -> TakenFiles:
    """What a model behind the Messages API accepts."""
    return TakenFiles(
        images=_images(model, endpoint, ImageTokenRule.ANTHROPIC),
        pdfs=_takes_pdfs(model, endpoint, _CLAUDE_WITH_PDFS.search(model)),
    )


def files_of_openai(model: str, endpoint: Endpoint) -> TakenFiles:
    """What a model behind one of OpenAI's APIs accepts. Hardly any compatible server accepts PDFs."""
    rule = ImageTokenRule.OPENAI_PATCHES if _OPENAI_IN_PATCHES.search(model) else ImageTokenRule.OPENAI_TILES
    images = _images(model, endpoint, rule)
    is_openai = endpoint.address.host == "api.openai.com"
    return TakenFiles(images=images, pdfs=_takes_pdfs(model, endpoint, images and is_openai))


def _images(model: str, endpoint: Endpoint, usual: ImageTokenRule) -> ImageTokenRule | None:
    """How a model counts images; None if it doesn't accept any."""
    listed, known = endpoint.models.get(model), known_models().find(model)
    is_usual = known.images if known else _WITH_IMAGES.search(model)
    is_taken = _is_taken(listed and listed.takes_images, endpoint.images, is_usual)
    return ((known and known.images) or usual) if is_taken else None


def _takes_pdfs(model: str, endpoint: Endpoint, is_usual: object) -> bool:
    listed, known = endpoint.models.get(model), known_models().find(model)
    is_usual = is_usual and (known is None or known.pdfs)
    return _is_taken(listed and listed.takes_pdfs, endpoint.pdfs, is_usual)


def _is_taken(said: bool | None, setting: Taken, is_usual: object) -> bool:
    if said is not None:
        return said
    return bool(is_usual) if setting == "auto" else setting == "on"


def in_base64(block: ImageBlock | DocumentBlock, contents: Mapping[str, bytes]) -> str:
    """The content of a block."""
    return b64encode(contents[block.content_id]).decode()


def image_type(block: ImageBlock, contents: Mapping[str, bytes]) -> str:
    """The media type of an image; we encode images in these two only."""
    return PNG if contents[block.content_id].startswith(b"\x89PNG") else JPEG


def has_files(request: ModelRequest) -> bool:
    """Whether a request is large enough to be encoded in a thread."""
    return bool(request.contents)
