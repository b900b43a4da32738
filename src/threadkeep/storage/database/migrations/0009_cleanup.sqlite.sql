-- The texts that a receipt named before it went, whatever took it: perhaps nobody names them any more.
CREATE TABLE tk_let_go_texts (
    id integer NOT NULL PRIMARY KEY,
    sha256 text NOT NULL
);
CREATE TRIGGER tk_receipt_texts_go AFTER DELETE ON tk_receipt_texts BEGIN
    INSERT INTO tk_let_go_texts (sha256) VALUES (old.sha256);
END;
INSERT INTO tk_let_go_texts (sha256) SELECT sha256 FROM tk_prompt_texts AS kept
    WHERE NOT EXISTS (SELECT 1 FROM tk_receipt_texts AS used WHERE used.sha256 = kept.sha256);
