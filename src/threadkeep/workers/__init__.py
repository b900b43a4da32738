"""Worker processes: started, confined, limited and ended in one way."""
