-- What a user tells every agent: part of the prompt, unless the agent's owner switches it off.
ALTER TABLE tk_users ADD COLUMN instructions text NOT NULL DEFAULT '';
