"""The best-known models: what they accept and what they cost, as their providers' pages say."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.money import Price

TABLE = Path(__file__).with_suffix(".toml")

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """What is known about a model, whichever gateway reaches it."""

    context_tokens: int
    max_output_tokens: int | None
    supports_tools: bool
    images: ImageTokenRule | None
    """How it counts images; None if it doesn't accept any."""
    pdfs: bool
    price: Price | None
    """In the table's currency; None if it is unknown."""
    source: str
    """The page that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModels:
    """The table."""

    as_of: date
    """When its sources were read."""
    currency: str
    models: Mapping[str, KnownModel]

    def find(self, name: str) -> KnownModel | None:
        """A model by the provider's name for it, with or without the date of its version."""
        return self.models.get(name) or self.models.get(_DATED.sub("", name))


@cache
def known_models() -> KnownModels:
    """The table that comes with Threadkeep; read when it is first needed."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    models = {entry["name"]: _model(entry) for entry in table["models"]}
    return KnownModels(as_of=table["date"], currency=table["currency"], models=models)


def _model(entry: Mapping[str, Any]) -> KnownModel:
    images, price = entry.get("takes_images"), entry.get("price")
    return KnownModel(
        context_tokens=entry["context_tokens"],
        max_output_tokens=entry.get("max_output_tokens"),
        supports_tools=entry.get("supports_tools", True),
        images=ImageTokenRule(images) if images else None,
        pdfs=entry.get("takes_pdfs", False),
        price=Price.per_million(**price) if price else None,
        source=entry["source"],
    )
