-- The version that an agent had when `threadkeep apply` last wrote it from a file; NULL if it never did. A later version has been
-- changed elsewhere since.
ALTER TABLE tk_agents ADD COLUMN applied_version bigint;
