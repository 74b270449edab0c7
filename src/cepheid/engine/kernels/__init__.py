"""What kernels share, and what they need of numba."""
