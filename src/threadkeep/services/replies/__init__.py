"""How an agent replies: what starts and resumes its turns, and what its model receives."""
