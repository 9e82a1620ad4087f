"""Options that are given once: argparse forgets all values but the last."""

import argparse
from typing import Any

from stream.errors import require


class Once(argparse._StoreAction):
    """Takes the value of an option, and refuses a second one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Take a value. Raises UserError if there is one."""
        before = getattr(namespace, self.dest, self.default)
        require(
            option_string is None or before is self.default,
            f"{max(self.option_strings, key=len, default='')} is given twice ({before} and "
            f"{values}); give it once",
        )
        super().__call__(parser, namespace, values, option_string)


def refuse_twice(parser: argparse.ArgumentParser) -> None:
    """Have a parser that others made refuse an option that is given twice."""
    for action in parser._actions:
        if type(action) is argparse._StoreAction:
            action.__class__ = Once
