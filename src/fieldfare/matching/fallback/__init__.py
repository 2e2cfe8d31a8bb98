"""The engine without compiled kernels: the same answers from NumPy arrays."""
