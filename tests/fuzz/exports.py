"""Files that somebody says are an export: of ours, of ChatGPT, of Claude, or of nobody."""

from hypothesis import strategies as st

from tests.fuzz.hostile import BYTES, TEXT, dumped, objects, values, with_type

CHATGPT = [
    "mapping", "message", "parent", "author", "role", "content", "content_type", "parts", "text",
    "create_time", "conversation_id", "id", "title", "current_node", "metadata", "recipient",
    "thoughts", "name", "is_archived",
]  # fmt: skip
CLAUDE = [
    "uuid", "chat_messages", "sender", "text", "content", "type", "thinking", "input", "name",
    "created_at", "attachments", "files", "extracted_content", "file_name", "parent_message_uuid",
    "is_error",
]  # fmt: skip
SOME_TEXT = TEXT | st.none()
SECONDS = st.floats() | st.integers() | st.none()
NODES = st.sampled_from(["a", "b", "c", "d"])
CHATGPT_CONTENT = objects(
    {"content_type": st.sampled_from(["text", "code", "thoughts", "multimodal_text"]) | TEXT},
    parts=st.lists(TEXT | values(*CHATGPT), max_size=2),
    text=SOME_TEXT,
    thoughts=st.lists(objects({"summary": SOME_TEXT}), max_size=2),
)
CHATGPT_MESSAGES = objects(
    {
        "author": objects({"role": st.sampled_from(["user", "assistant", "tool", "system"]) | TEXT}),
        "content": CHATGPT_CONTENT,
    },
    create_time=SECONDS,
    recipient=SOME_TEXT,
    metadata=st.dictionaries(st.text(max_size=3), values(), max_size=2),
)
CHATGPT_NODES = objects({"parent": NODES | st.none()}, message=CHATGPT_MESSAGES)
CHATGPT_CONVERSATIONS = objects(
    {"conversation_id": TEXT, "mapping": st.dictionaries(NODES, CHATGPT_NODES, max_size=4)},
    title=SOME_TEXT,
    create_time=SECONDS,
    update_time=SECONDS,
    current_node=NODES,
)
CLAUDE_BLOCKS = objects(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result"]) | TEXT},
    text=SOME_TEXT,
    thinking=SOME_TEXT,
    name=SOME_TEXT,
    input=values(),
    content=values("type", "text"),
)
CLAUDE_MESSAGES = objects(
    {"uuid": NODES | TEXT, "sender": st.sampled_from(["human", "assistant"]) | TEXT},
    text=SOME_TEXT,
    content=st.lists(CLAUDE_BLOCKS, max_size=3),
    created_at=SOME_TEXT | st.sampled_from(["0001-01-01T00:00:00+14:00", "9999-12-31"]),
    attachments=st.lists(objects({"file_name": SOME_TEXT}), max_size=2),
    parent_message_uuid=NODES,
)
CLAUDE_CONVERSATIONS = objects(
    {"uuid": TEXT, "chat_messages": st.lists(CLAUDE_MESSAGES, max_size=4)},
    name=SOME_TEXT,
    created_at=SOME_TEXT,
    updated_at=SOME_TEXT,
)
OURS = [
    "type", "version", "user_id", "exported_at", "id", "agent_id", "title", "metadata", "is_main",
    "created_at", "updated_at", "seq", "role", "status", "parts", "text", "conversations", "content",
    "parent_id", "name",
]  # fmt: skip
OUR_TYPES = [
    "threadkeep-export", "agent", "document", "known_agent", "memory", "conversation", "payload",
    "turn", "message", "compaction", "conversation_end", "briefing", "end",
]  # fmt: skip
HEADER = b'{"type":"threadkeep-export","version":2,"user_id":"alice","exported_at":1}'
OUR_LINES = BYTES | st.builds(
    with_type,
    st.sampled_from(OUR_TYPES),
    st.dictionaries(st.sampled_from(OURS), values(*OURS), max_size=12),
).map(dumped)
FOREIGN = st.lists(
    CHATGPT_CONVERSATIONS | CLAUDE_CONVERSATIONS | values(*CHATGPT) | values(*CLAUDE), max_size=3
).map(dumped)
IMPORTS = (
    FOREIGN
    | BYTES
    | BYTES.map(lambda some: b"[" + some)
    | st.lists(OUR_LINES, max_size=5).map(lambda lines: b"\n".join([HEADER, *lines]))
)
