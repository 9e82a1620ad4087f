"""What a run would take, told before it starts.

- ``costs``: straight lines through measured times
- ``trial``: a learner that is thrown away learns and is scored a little
- ``estimate``: from there to the time, memory and disk of the whole run
- ``foretell``: all of that for a configuration
"""
