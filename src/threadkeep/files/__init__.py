"""Files of messages: images and PDFs, read in worker processes that a hostile file may kill."""
