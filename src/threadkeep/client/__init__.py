"""Talking to a Threadkeep from outside."""
