"""Processes that handle strangers' files: how they start, what confines and limits them, how they end."""
