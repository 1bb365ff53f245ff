"""Pictures of a report, drawn with matplotlib on figures of our own: pyplot's, and its settings, are left alone."""
