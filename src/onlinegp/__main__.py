"""Run the command line: `python -m onlinegp` is the same as `onlinegp`."""

from onlinegp.cli import main

raise SystemExit(main())
