"""One call of the user's, as the run loop of csrc/run makes it."""
