"""The command line of analysis: python -m analysis compare|figures|report|layer-ranges|verify."""

import argparse
import sys
from collections.abc import Sequence

from analysis.commands import add_commands, complain
from stream.cli.terminal import outlive_readers
from stream.errors import UserError

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, 2 after a mistake of the user."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis",
        description="Read run folders: compare runs in a table, draw their figures, report them.",
    )
    add_commands(parser.add_subparsers(dest="command", required=True, metavar="COMMAND"))
    arguments = parser.parse_args(argv)
    try:
        return arguments.execute(arguments)
    except UserError as error:
        complain(" ".join(str(error).split()))
        return USAGE_ERROR


if __name__ == "__main__":
    outlive_readers()
    sys.exit(main())
