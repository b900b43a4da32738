"""`python -m threadkeep`."""

from threadkeep.cli import main

raise SystemExit(main())
