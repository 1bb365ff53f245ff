"""Pictures of a report, drawn with matplotlib on separate figures: pyplot's, and its settings, stay as they are."""
