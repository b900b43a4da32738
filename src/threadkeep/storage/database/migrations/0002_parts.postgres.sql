ALTER TABLE tk_turns
    DROP CONSTRAINT tk_turns_status_check,
    ADD CONSTRAINT tk_turns_status_check
        CHECK (status IN ('RUNNING', 'WAITING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    ADD COLUMN cache_read_tokens bigint,
    ADD COLUMN cache_write_tokens bigint,
    -- How often in a row the turn's node was lost.
    ADD COLUMN attempts bigint NOT NULL DEFAULT 0;
DROP INDEX tk_turns_active;
CREATE UNIQUE INDEX tk_turns_active
    ON tk_turns (conversation_id) WHERE status IN ('RUNNING', 'WAITING') AND origin = 'live';

ALTER TABLE tk_messages
    DROP CONSTRAINT tk_messages_status_check,
    DROP CONSTRAINT tk_messages_check,
    DROP COLUMN thought_process,
    DROP COLUMN citations,
    DROP COLUMN artifact_ids,
    -- NULL where the content says it all: one text, one card, or nothing yet (storage/parts.py).
    ADD COLUMN parts text,
    ADD COLUMN parent_id uuid,
    ADD COLUMN on_path boolean NOT NULL DEFAULT TRUE,
    ADD COLUMN file_count bigint NOT NULL DEFAULT 0;
-- A reply's parent is its question, every other message's the one before it on the path. A message off the
-- path keeps the status that its turn ended in.
UPDATE tk_messages SET
    parent_id = COALESCE(
        (SELECT turn.user_message_id FROM tk_turns AS turn
        WHERE turn.id = tk_messages.turn_id AND turn.assistant_message_id = tk_messages.id),
        (SELECT before.id FROM tk_messages AS before
        WHERE before.conversation_id = tk_messages.conversation_id AND before.seq < tk_messages.seq
            AND before.status <> 'OVERWRITTEN'
        ORDER BY before.seq DESC LIMIT 1)),
    on_path = status <> 'OVERWRITTEN',
    status = CASE WHEN status <> 'OVERWRITTEN' THEN status ELSE COALESCE(
        (SELECT turn.status FROM tk_turns AS turn WHERE turn.id = tk_messages.turn_id
            AND (turn.status IN ('FAILED', 'CANCELLED')
                OR (turn.status = 'COMPLETED' AND trim(content, :blank) <> ''))),
        CASE WHEN trim(content, :blank) = '' THEN 'CANCELLED' ELSE 'COMPLETED' END) END;
ALTER TABLE tk_messages
    ALTER COLUMN on_path DROP DEFAULT,
    ADD CONSTRAINT tk_messages_status_check
        CHECK (status IN ('PENDING', 'STREAMING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    ADD CONSTRAINT tk_messages_check CHECK ((role = 'assistant' AND status <> 'COMPLETED')
        OR trim(content, :blank) <> '' OR (role = 'user' AND file_count > 0));
-- The active path is one range of this index.
CREATE UNIQUE INDEX tk_messages_on_path ON tk_messages (conversation_id, seq) WHERE on_path;
CREATE INDEX tk_messages_by_parent ON tk_messages (conversation_id, parent_id);

ALTER TABLE tk_tool_calls
    DROP CONSTRAINT tk_tool_calls_status_check,
    ADD CONSTRAINT tk_tool_calls_status_check
        CHECK (status IN ('running', 'ok', 'error', 'timeout', 'denied', 'interrupted', 'unknown')),
    ADD COLUMN model_name text,
    ADD COLUMN artifact_ids text,
    ADD COLUMN approval text;
CREATE INDEX tk_tool_calls_by_id ON tk_tool_calls (conversation_id, tool_call_id, created_at DESC);
-- Which role the agent has taken on.
CREATE INDEX tk_tool_calls_roles ON tk_tool_calls (conversation_id, created_at DESC, position DESC)
    WHERE server = 'promptx' AND tool_name = 'promptx_action' AND status = 'ok';
