"""The methods: a module here that defines a `Learner` is one, and the file's name is its name.

`base` has the contract, `_shared/` what several methods have in common. A method in somebody's own
package is found through the entry-point group ``task_stream.learners``. Importing this package
imports no method and no torch: `LEARNERS` (see `catalogue`) does so for a method that is asked for.
"""

import sys

from stream.learners.catalogue import Catalogue

ENTRY_POINTS = "task_stream.learners"
LEARNERS = Catalogue(sys.modules[__name__], ENTRY_POINTS)
