"""Files of messages: images and PDFs, read in confined processes that a hostile file may kill."""
