"""`python -m onlinegp` is the command `onlinegp`."""

from onlinegp.cli import main

raise SystemExit(main())
