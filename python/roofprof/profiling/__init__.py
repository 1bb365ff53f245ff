"""Profile models: the profiler, regions and declared work, costs of operators, programs and traces."""
