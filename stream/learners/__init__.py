"""The methods: a module here that defines a `Learner` is one, and the file's name is its name.

`base` has the contract, `_shared/` what several methods have in common. A method in somebody's own
package is found through the entry-point group ``task_stream.learners``.
"""

import sys
from importlib.metadata import entry_points

from stream.learners.discovery import find_learners

ENTRY_POINTS = "task_stream.learners"
LEARNERS = find_learners(sys.modules[__name__], entry_points(group=ENTRY_POINTS))
