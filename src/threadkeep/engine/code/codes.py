"""The codes of notices and errors that only turns of agents in code have."""

from threadkeep.domain.errors import AgentDiverged, AgentFailed, EffectUnknown, TooManySteps

AGENT_NOTICE = "AGENT_NOTICE"
"""A notice of the program's own."""
OUTPUT_DIFFERED = "OUTPUT_DIFFERED"
"""The program, run again, said something else than before."""

AGENT_FAILED = AgentFailed.code
NOTHING_SAID = "The agent's code ended without a reply."
"""The error of a turn whose program returned and has said nothing; its code is AGENT_FAILED."""
REPLAY_DIVERGED = AgentDiverged.code
OUTCOME_UNKNOWN = EffectUnknown.code
STEP_LIMIT = TooManySteps.code
