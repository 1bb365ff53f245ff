"""Predictions of a device that were fitted to its own measured kernels."""
