"""The values that a call can reach, and how they are restored."""
