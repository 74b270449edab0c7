"""Puts compiled kernels into a wheel if CEPHEID_KERNELS names their folder: then the wheel is for one platform."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Without the variable, and for editable installations, nothing changes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files and names the platform."""
        folder = os.environ.get("CEPHEID_KERNELS")
        if not folder or version == "editable":
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["force_include"][folder] = "cepheid/_kernels"
        build_data["tag"] = f"{python}-{python}-{platform}"
        build_data["pure_python"] = False
