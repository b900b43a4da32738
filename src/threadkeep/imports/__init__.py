"""Imports of our own exports, of ChatGPT's and of Claude's: from a stranger's file to conversations here.

    runs.py         imports that users start: uploaded, running in the background, stopped, listed
    user_import.py  what a user gets of a file: all of it, nothing twice (agents, files, ids, report)
    confined.py     the file as the server sees it, through frames to the process that reads it (process.py)
    reading.py      opens archives, folders and files; one module per product reads them (foreign.py says
                    what into), conversion.py and checks.py make conversations of ours

What is stored: `storage/imports/`; the format of our own files: `exports/format.py`.
"""
