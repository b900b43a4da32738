-- A turn can also wait for the client to run a tool.
ALTER TABLE tk_approvals DROP CONSTRAINT tk_approvals_kind_check;
ALTER TABLE tk_approvals ADD CONSTRAINT tk_approvals_kind_check
    CHECK (kind IN ('tool', 'question', 'elicitation', 'client_tool'));
