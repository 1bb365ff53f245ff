"""roofprof inside trainers, experiment trackers and notebooks.

Each module needs one package, and none is loaded before it is imported: ``huggingface`` (transformers), ``lightning``,
``accelerate``, ``loggers`` (TensorBoard, MLflow, W&B), ``notebook`` (IPython, by ``%load_ext roofprof``).
"""
