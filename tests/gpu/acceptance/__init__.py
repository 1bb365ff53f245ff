"""The acceptance on a GPU: ../README.md says how to run it."""
