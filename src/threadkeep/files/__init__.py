"""Files of messages: images and PDFs, looked at in worker processes that may die of a hostile one."""
