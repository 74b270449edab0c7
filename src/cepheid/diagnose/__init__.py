"""Why a query finds nothing, or too little: where its matches are lost, and what would bring them back."""

from cepheid.diagnose.diagnose import diagnose
from cepheid.diagnose.diagnosis import (
    Closest,
    ComponentCount,
    ConditionCount,
    Count,
    Diagnosis,
    Hint,
    StepCount,
    WindowNeeded,
    Without,
)

__all__ = [
    "Closest",
    "ComponentCount",
    "ConditionCount",
    "Count",
    "Diagnosis",
    "Hint",
    "StepCount",
    "WindowNeeded",
    "Without",
    "diagnose",
]
