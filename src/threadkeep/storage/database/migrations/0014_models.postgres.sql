-- What turns have used before there was a ledger; nobody knows what it cost.
INSERT INTO tk_ledger (id, user_id, agent_id, purpose, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, estimated, turns, at, day)
SELECT turn.id, turn.user_id, conversation.agent_id, 'turn', turn.model, COALESCE(turn.input_tokens, 0),
    COALESCE(turn.output_tokens, 0), COALESCE(turn.cache_read_tokens, 0), COALESCE(turn.cache_write_tokens, 0),
    COALESCE(turn.usage_estimated, FALSE), 1, turn.started_at,
    to_char(to_timestamp(turn.started_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
FROM tk_turns AS turn JOIN tk_conversations AS conversation ON conversation.id = turn.conversation_id
WHERE turn.user_id IS NOT NULL AND turn.status NOT IN ('RUNNING', 'WAITING');
