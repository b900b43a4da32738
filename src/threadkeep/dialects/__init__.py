"""Ways to tell a turn to a client: pure mappings from events to frames. They know the domain only."""

from collections.abc import Mapping

from threadkeep.dialects.agentx import AGENTX
from threadkeep.dialects.events import EVENTS
from threadkeep.dialects.sse import Dialect
from threadkeep.dialects.text import TEXT

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (EVENTS, TEXT, AGENTX)}
