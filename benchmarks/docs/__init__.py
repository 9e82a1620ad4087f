"""The documentation: built as a site, and its commands run as they are printed."""
