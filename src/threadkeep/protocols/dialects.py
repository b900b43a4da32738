"""The dialects by name, as `?dialect=` selects them."""

from collections.abc import Mapping

from threadkeep.protocols.agentx.encode import AGENTX
from threadkeep.protocols.dialect import Dialect
from threadkeep.protocols.threadkeep.encode import EVENTS, TEXT

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (EVENTS, TEXT, AGENTX)}
