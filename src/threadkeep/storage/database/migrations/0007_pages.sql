-- How many pages a PDF has that anybody can open.
ALTER TABLE tk_files ADD COLUMN pages integer;
