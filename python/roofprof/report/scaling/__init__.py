"""The scaling of a program over its ranks: speed-up, efficiency, the parts of the loss, and a curve fitted to it."""
