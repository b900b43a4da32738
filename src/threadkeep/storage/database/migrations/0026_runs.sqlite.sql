INSERT INTO tk_runs (conversation_id, run_id, parts, bytes, has_start, has_end)
SELECT conversation_id, run_id,
    SUM(1 + COALESCE(json_array_length(event, '$.tools'), 0) + COALESCE(json_array_length(event, '$.citations'), 0)
        + COALESCE(json_array_length(event, '$.files'), 0)),
    SUM(200 + length(CAST(event AS blob))),
    MAX(type = 'ExecutionStarted'),
    MAX(type IN ('ExecutionCompleted', 'ExecutionFailed', 'ExecutionCancelled'))
FROM tk_executions GROUP BY conversation_id, run_id;
