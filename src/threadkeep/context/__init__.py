"""What the model receives: prompt, window, rendering, files, results, titles, compaction."""
