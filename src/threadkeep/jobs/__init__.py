"""Background work, for which no request waits: periodic jobs (`hourly.py`), and jobs from the queue."""
