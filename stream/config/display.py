"""How much of a run is shown, and how."""

AUTO, PLAIN, QUIET = "auto", "plain", "quiet"
DISPLAYS = (AUTO, PLAIN, QUIET)
