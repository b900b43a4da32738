-- What chats show for a link to a share. NULL for shares of earlier versions, until someone asks for it.
ALTER TABLE tk_shares ADD COLUMN preview text;
