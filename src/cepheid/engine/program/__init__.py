"""The program of a query: what all kernels read of it, and how it is compiled."""
