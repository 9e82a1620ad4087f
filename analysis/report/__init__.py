"""One HTML file about many runs; `write` puts it together, `page/` is how it looks and moves."""
