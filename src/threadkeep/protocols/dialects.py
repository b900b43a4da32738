"""The dialects by name, as `?dialect=` selects them."""

from collections.abc import Mapping
from typing import Literal

from threadkeep.protocols.agentx.encode import AGENTX
from threadkeep.protocols.dialect import Dialect
from threadkeep.protocols.threadkeep.encode import EVENTS, TEXT

DialectName = Literal["events", "text", "agentx"]
"""The names, as the OpenAPI document lists them."""

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (EVENTS, TEXT, AGENTX)}
