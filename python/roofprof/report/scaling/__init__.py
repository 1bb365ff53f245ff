"""How a program scales over its ranks: speed-up, efficiency, what the loss consists of, and a curve fitted to it."""
