"""``python -m mislabel``: the command line."""

import sys

from mislabel.cli import main

sys.exit(main())
