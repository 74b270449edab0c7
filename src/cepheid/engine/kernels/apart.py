"""The former name of `compile.called_by_address`, for the kernels that still use it."""

from cepheid.engine.kernels.compile import called_by_address as apart

__all__ = ["apart"]
