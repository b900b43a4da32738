"""Ways to stream a turn to a client: pure mappings from events to frames. They know only the domain."""

from collections.abc import Mapping

from threadkeep.protocols.agentx.encode import AGENTX
from threadkeep.protocols.dialect import Dialect
from threadkeep.protocols.threadkeep.events import EVENTS
from threadkeep.protocols.threadkeep.text import TEXT

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (EVENTS, TEXT, AGENTX)}
