"""Which models take images, by their names: no provider's API tells it for all of them."""

import re
from typing import Literal

ImagesSetting = Literal["auto", "on", "off"]

_FAMILIES = re.compile(
    r"claude-(3|opus|sonnet|haiku|[4-9])|gpt-(4o|4\.|4-turbo|4-vision|[5-9])|chatgpt-4o|o[134](-|$)|gemini"
    r"|llava|bakllava|moondream|pixtral|mistral-(small-3|medium-3)|gemma-?[34]|llama-?(3\.2.*vision|4)"
    r"|qwen.*(vl|omni)|internvl|minicpm-v|phi-.*vision|grok-.*vision|grok-[4-9]|glm-4\.?\d?v|vision",
    re.IGNORECASE,
)


def takes_images(setting: ImagesSetting, model: str) -> bool:
    """Whether a model takes images: as the operator says, or if its family is known to."""
    if setting != "auto":
        return setting == "on"
    return _FAMILIES.search(model) is not None
