"""Figures of runs of one stream, as PNG, SVG and PDF; `write` chooses and saves them."""
