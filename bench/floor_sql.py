"""The reading statements of both floors, with `?` for parameters."""

AGENTS = """id, owner_id, name, description, primary_role_id, system_prompt, model, visibility, settings,
    is_default, version, created_at, updated_at, deleted_at"""
CONVERSATIONS = """id, user_id, agent_id, session_id, title, title_source, status, is_main, metadata,
    last_seq, message_count, archived_to_seq, active_turn_id, created_at, updated_at, last_message_at,
    deleted_at, tip_id"""
MESSAGES = """id, conversation_id, seq, turn_id, role, content, content_type, parts, status, created_at,
    completed_at, token_count, usage, model, error, parent_id, on_path, tool_call_count"""

AGENT = f"SELECT {AGENTS} FROM tk_agents WHERE id = ?"
CONVERSATION = f"""SELECT {CONVERSATIONS} FROM tk_conversations
    WHERE id = ? AND user_id = ? AND deleted_at IS NULL"""
MAIN = f"""SELECT {CONVERSATIONS} FROM tk_conversations
    WHERE user_id = ? AND agent_id = ? AND is_main AND deleted_at IS NULL"""
LIST = f"""SELECT {CONVERSATIONS} FROM tk_conversations WHERE user_id = ? AND deleted_at IS NULL
    ORDER BY updated_at DESC, id DESC LIMIT ?"""
LATEST = f"""SELECT {MESSAGES} FROM tk_messages
    WHERE conversation_id = ? AND on_path ORDER BY seq DESC LIMIT ?"""


def names(columns: str) -> tuple[str, ...]:
    """The names of selected columns."""
    return tuple(columns.replace(",", " ").split())
