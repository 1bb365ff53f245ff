"""roofprof inside trainers and experiment trackers.

Each module needs one package, and none is loaded before it is imported: ``huggingface`` (transformers), ``lightning``,
``accelerate``, ``loggers`` (TensorBoard, MLflow, W&B).
"""
