"""Models that need more than a plain call: compiled, exported, TorchScript, tensors without data."""
