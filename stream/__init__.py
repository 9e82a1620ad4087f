"""Feed a stream of text classification tasks to a learner and measure every cell."""
