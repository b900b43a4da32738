-- 200 bytes for each row, and its texts.
UPDATE tk_conversations SET text_bytes = 200 + octet_length(metadata) +
    COALESCE((SELECT SUM(200 + octet_length(content) + COALESCE(octet_length(parts), 0))
        FROM tk_messages AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + octet_length(arguments) + COALESCE(octet_length(result), 0) +
        COALESCE(octet_length(chart_data), 0))
        FROM tk_tool_calls AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + octet_length(summary))
        FROM tk_compactions AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + octet_length(event))
        FROM tk_executions AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(octet_length(begun_with))
        FROM tk_turns AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + size) FROM tk_payloads AS kept
        WHERE kept.conversation_id = tk_conversations.id), 0);
CREATE INDEX tk_conversations_bytes ON tk_conversations (user_id, text_bytes);

-- The same of an agent, a briefing and a memory.
ALTER TABLE tk_agents ADD COLUMN text_bytes bigint
    GENERATED ALWAYS AS (200 + prompt_bytes + octet_length(description) + octet_length(system_prompt) +
        octet_length(settings)) STORED;
CREATE INDEX tk_agents_bytes ON tk_agents (owner_id, text_bytes) WHERE NOT is_cleared;
ALTER TABLE tk_briefings ADD COLUMN text_bytes bigint
    GENERATED ALWAYS AS (200 + octet_length(title) + octet_length(summary) +
        COALESCE(octet_length(data), 0) + COALESCE(octet_length(actions), 0)) STORED;
DROP INDEX tk_briefings_by_agent;
CREATE INDEX tk_briefings_by_agent ON tk_briefings (agent_id, text_bytes);
ALTER TABLE tk_memories ADD COLUMN text_bytes bigint
    GENERATED ALWAYS AS (200 + octet_length(content) + COALESCE(octet_length(tags), 0)) STORED;
CREATE INDEX tk_memories_bytes ON tk_memories (user_id, text_bytes);
