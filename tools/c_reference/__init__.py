"""The kernels of the engine in C, to know the cost of the same loops there, and to check the kernels in Python."""
