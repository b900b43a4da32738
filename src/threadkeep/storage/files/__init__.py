"""The files of messages in the database and on the disk."""
