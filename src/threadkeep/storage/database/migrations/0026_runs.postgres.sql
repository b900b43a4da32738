INSERT INTO tk_runs (conversation_id, run_id, parts, bytes, has_start, has_end)
SELECT conversation_id, run_id,
    SUM(1 + COALESCE(json_array_length(CAST(event AS json) -> 'tools'), 0)
        + COALESCE(json_array_length(CAST(event AS json) -> 'citations'), 0)
        + COALESCE(json_array_length(CAST(event AS json) -> 'files'), 0)),
    SUM(200 + octet_length(event)),
    bool_or(type = 'ExecutionStarted'),
    bool_or(type IN ('ExecutionCompleted', 'ExecutionFailed', 'ExecutionCancelled'))
FROM tk_executions GROUP BY conversation_id, run_id;
