"""What imports, exports and forks store: whole conversations, and the runs of imports."""
