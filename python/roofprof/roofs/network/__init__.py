"""The network's roof: what collectives reach between the ranks of a program, measured, fitted and kept."""
