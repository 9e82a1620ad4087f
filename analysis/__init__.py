"""Reads run folders: tables that compare runs, and figures. Needs no torch."""
