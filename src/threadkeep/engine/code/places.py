"""By what a claim is known when the code runs again: what it asks for, not when it comes."""

import hashlib

import msgspec

from threadkeep.wire.programs import (
    AMBIGUOUS,
    AgentClaim,
    AgentDone,
    AskClaim,
    CallClaim,
    Claim,
    ContentClaim,
    ModelClaim,
    Refused,
    SaveClaim,
    StepClaim,
    TakeClaim,
    UsageClaim,
)

AGENT_HASH = 16
"""How much of a hash an agent's key has: it is part of all keys of what that does."""


def place_of(claim: Claim) -> tuple[str, str, str]:
    """A claim's scope, its kind with its name if it has one, and a hash of what it asks."""
    match claim:
        case StepClaim():
            return claim.scope, f"step:{claim.name}", claim.hash
        case ModelClaim():
            return claim.scope, "model", _model_hash(claim)
        case CallClaim():
            return claim.scope, f"call:{claim.tool}", claim.call_id or _hash(claim.arguments)
        case AskClaim():
            return claim.scope, "ask", _hash((claim.message, claim.schema))
        case TakeClaim():
            asked = (claim.limit, claim.as_context)
            return (
                claim.scope,
                f"take:{claim.what}",
                _hash(asked if claim.files is None else (*asked, claim.files)),
            )
        case ContentClaim():
            return "", "content", claim.content_id
        case UsageClaim():
            return claim.scope, "usage", _hash((claim.model, claim.input_tokens, claim.output_tokens))
        case SaveClaim():
            return claim.scope, "save", ""
        case AgentClaim():
            return claim.scope, f"agent:{claim.agent}", _hash((claim.text, claim.is_handoff))[:AGENT_HASH]
        case AgentDone():
            return claim.scope, "agent_end", ""


def ambiguous(claim: Claim) -> Refused:
    """The answer to a claim that a run which starts from a saved point could take for an earlier one."""
    _, kind, _ = place_of(claim)
    name = kind.partition(":")[2] or kind
    return Refused(
        AMBIGUOUS,
        f"`{name}` is asked for after `turn.save` exactly as before. A run that starts from `turn.saved` "
        "couldn't tell the two apart: put what follows each save in a `turn.scope(…)` of its own, or pass "
        "what differs.",
        claim.id,
    )


def _model_hash(claim: ModelClaim) -> str:
    """What the code passed, never what the server adds: that may have changed since."""
    asked = claim.messages, claim.system, claim.model, [it.name for it in claim.tools], claim.server_tools
    return _hash((*asked, claim.output))


def _hash(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
