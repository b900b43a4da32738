-- Where another server runs the agent, as JSON: `url`, `headers` with encrypted values, `repeat`. NULL if it runs here.
ALTER TABLE tk_agents ADD COLUMN remote text;
