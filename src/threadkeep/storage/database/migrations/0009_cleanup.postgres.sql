-- The texts that a receipt named before it went, whatever took it: perhaps nobody names them any more. A host
-- application that deletes a user does so with a search path of its own, so the trigger names the schema.
CREATE TABLE tk_let_go_texts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256 text NOT NULL
);
CREATE FUNCTION tk_let_go_of_texts() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
    EXECUTE format(''INSERT INTO %I.tk_let_go_texts (sha256) SELECT sha256 FROM gone'', TG_TABLE_SCHEMA);
    RETURN NULL;
END';
CREATE OR REPLACE TRIGGER tk_receipt_texts_go AFTER DELETE ON tk_receipt_texts
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tk_let_go_of_texts();
INSERT INTO tk_let_go_texts (sha256) SELECT sha256 FROM tk_prompt_texts AS kept
    WHERE NOT EXISTS (SELECT 1 FROM tk_receipt_texts AS used WHERE used.sha256 = kept.sha256);
