CREATE FUNCTION tk_leave_agent_in_code() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
-- A node of the version before takes an agent without an owner for one whose owner is gone: it would empty and delete it.
CREATE OR REPLACE TRIGGER tk_agents_in_code_stay BEFORE DELETE ON tk_agents
    FOR EACH ROW WHEN (old.code_key IS NOT NULL) EXECUTE FUNCTION tk_leave_agent_in_code();
CREATE OR REPLACE TRIGGER tk_agents_in_code_hidden BEFORE UPDATE OF deleted_at ON tk_agents
    FOR EACH ROW WHEN (old.code_key IS NOT NULL AND old.deleted_at IS NULL AND new.deleted_at IS NOT NULL
        AND new.code_version IS NOT NULL) EXECUTE FUNCTION tk_leave_agent_in_code();
-- And it would have a model answer for the program.
CREATE FUNCTION tk_refuse_turn_of_code() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
    IF EXISTS (SELECT 1 FROM tk_conversations AS conversation JOIN tk_agents AS agent ON agent.id = conversation.agent_id
            WHERE conversation.id = new.conversation_id AND agent.code_key IS NOT NULL) THEN
        RAISE EXCEPTION ''This agent is a program, which only a newer version of Threadkeep can run'';
    END IF;
    RETURN new;
END';
CREATE OR REPLACE TRIGGER tk_turns_of_code BEFORE INSERT ON tk_turns
    FOR EACH ROW WHEN (new.log_version < 4 AND new.origin = 'live' AND new.status = 'RUNNING')
    EXECUTE FUNCTION tk_refuse_turn_of_code();
