-- 200 bytes for each row, and its texts.
UPDATE tk_conversations SET text_bytes = 200 + length(CAST(metadata AS blob)) +
    COALESCE((SELECT SUM(200 + length(CAST(content AS blob)) + COALESCE(length(CAST(parts AS blob)), 0))
        FROM tk_messages AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + length(CAST(arguments AS blob)) +
        COALESCE(length(CAST(result AS blob)), 0) + COALESCE(length(CAST(chart_data AS blob)), 0))
        FROM tk_tool_calls AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + length(CAST(summary AS blob)))
        FROM tk_compactions AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + length(CAST(event AS blob)))
        FROM tk_executions AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(length(CAST(begun_with AS blob)))
        FROM tk_turns AS kept WHERE kept.conversation_id = tk_conversations.id), 0) +
    COALESCE((SELECT SUM(200 + size) FROM tk_payloads AS kept
        WHERE kept.conversation_id = tk_conversations.id), 0);
CREATE INDEX tk_conversations_bytes ON tk_conversations (user_id, text_bytes);

-- The same of an agent, a briefing and a memory. SQLite's backups can't copy generated columns.
ALTER TABLE tk_agents ADD COLUMN text_bytes bigint NOT NULL DEFAULT 0;
UPDATE tk_agents SET text_bytes = 200 + prompt_bytes + length(CAST(description AS blob)) +
        length(CAST(system_prompt AS blob)) + length(CAST(settings AS blob));
CREATE TRIGGER tk_agents_counted AFTER INSERT ON tk_agents BEGIN
    UPDATE tk_agents SET text_bytes = 200 + prompt_bytes + length(CAST(description AS blob)) +
        length(CAST(system_prompt AS blob)) + length(CAST(settings AS blob))
    WHERE id = new.id;
END;
CREATE TRIGGER tk_agents_recounted AFTER UPDATE OF prompt_bytes, description, system_prompt, settings ON tk_agents BEGIN
    UPDATE tk_agents SET text_bytes = 200 + prompt_bytes + length(CAST(description AS blob)) +
        length(CAST(system_prompt AS blob)) + length(CAST(settings AS blob))
    WHERE id = new.id;
END;
CREATE INDEX tk_agents_bytes ON tk_agents (owner_id, text_bytes) WHERE NOT is_cleared;
ALTER TABLE tk_briefings ADD COLUMN text_bytes bigint NOT NULL DEFAULT 0;
UPDATE tk_briefings SET text_bytes = 200 + length(CAST(title AS blob)) + length(CAST(summary AS blob)) +
        COALESCE(length(CAST(data AS blob)), 0) + COALESCE(length(CAST(actions AS blob)), 0);
CREATE TRIGGER tk_briefings_counted AFTER INSERT ON tk_briefings BEGIN
    UPDATE tk_briefings SET text_bytes = 200 + length(CAST(title AS blob)) + length(CAST(summary AS blob)) +
        COALESCE(length(CAST(data AS blob)), 0) + COALESCE(length(CAST(actions AS blob)), 0)
    WHERE user_id = new.user_id AND id = new.id;
END;
DROP INDEX tk_briefings_by_agent;
CREATE INDEX tk_briefings_by_agent ON tk_briefings (agent_id, text_bytes);
ALTER TABLE tk_memories ADD COLUMN text_bytes bigint NOT NULL DEFAULT 0;
UPDATE tk_memories SET text_bytes = 200 + length(CAST(content AS blob)) + COALESCE(length(CAST(tags AS blob)), 0);
CREATE TRIGGER tk_memories_counted AFTER INSERT ON tk_memories BEGIN
    UPDATE tk_memories SET text_bytes = 200 + length(CAST(content AS blob)) + COALESCE(length(CAST(tags AS blob)), 0)
    WHERE id = new.id;
END;
CREATE TRIGGER tk_memories_recounted AFTER UPDATE OF content, tags ON tk_memories BEGIN
    UPDATE tk_memories SET text_bytes = 200 + length(CAST(content AS blob)) + COALESCE(length(CAST(tags AS blob)), 0)
    WHERE id = new.id;
END;
CREATE INDEX tk_memories_bytes ON tk_memories (user_id, text_bytes);
