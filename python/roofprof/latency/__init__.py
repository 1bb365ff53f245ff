"""Latency and throughput of a model's calls, and sweeps over batch sizes."""
