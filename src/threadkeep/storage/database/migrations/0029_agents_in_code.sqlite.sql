-- A node of the version before takes an agent without an owner for one whose owner is gone: it would empty and delete it.
CREATE TRIGGER tk_agents_in_code_stay BEFORE DELETE ON tk_agents WHEN old.code_key IS NOT NULL
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER tk_agents_in_code_hidden BEFORE UPDATE OF deleted_at ON tk_agents
WHEN old.code_key IS NOT NULL AND old.deleted_at IS NULL AND new.deleted_at IS NOT NULL AND new.code_version IS NOT NULL
BEGIN SELECT RAISE(IGNORE); END;
-- And it would have a model answer for the program.
CREATE TRIGGER tk_turns_of_code BEFORE INSERT ON tk_turns
WHEN new.log_version < 4 AND new.origin = 'live' AND new.status = 'RUNNING' AND EXISTS (
    SELECT 1 FROM tk_conversations AS conversation JOIN tk_agents AS agent ON agent.id = conversation.agent_id
    WHERE conversation.id = new.conversation_id AND agent.code_key IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'This agent is a program, which only a newer version of Threadkeep can run'); END;
