"""Worker processes: started, confined, limited and ended in one way, and what they open."""
