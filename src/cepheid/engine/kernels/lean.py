"""The former name of `compile.borrowing`, for the kernels that still use it."""

from cepheid.engine.kernels.compile import borrowing as lean

__all__ = ["lean"]
