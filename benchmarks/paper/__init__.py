"""The comparison over 26 real tasks: the plan, the runs, their tables and figures."""
