"""Everything that leaves the server, recorded: each scenario's bytes on each wire, in `recorded/`."""
