"""A to-do application: people sign in and keep tasks. Only `chat.py` knows of Threadkeep."""
