"""What long runs draw cases of: each area is some drawn properties of the suite, run in one way."""

from __future__ import annotations

from dataclasses import dataclass, field

# The queries of test_many_streams.py are few and its streams many, so that compiled kernels are loaded once for all.
PLAIN = {"NUMBA_DISABLE_JIT": "1"}  # kernels as plain Python: new queries cost no compilation
ENGINES = "tests/engine"


@dataclass(frozen=True)
class Area:
    """Some properties, how they are run, and how many cases a full verification draws of them together."""

    name: str
    tests: tuple[str, ...]
    chosen: str = ""  # an expression over names, as for pytest -k
    environment: dict[str, str] = field(default_factory=dict)
    wanted: int = 10_000
    first: int = 25  # cases of each property in the first round, before it is known how long they take


AREAS = (
    Area("engines, plain", (ENGINES,), "not flink and not row_ and not live and not drawn_streams[streams]", PLAIN),
    Area(
        "engines, compiled",
        tuple(f"{ENGINES}/test_{name}.py" for name in ("many_streams", "contract", "drawn_expressions")),
        "not flink and not row_ and not drawn_streams[streams] and not drawn_streams[live]",
        {"CEPHEID_COMPILE": "always"},
        first=2,
    ),
    Area(
        "streams",
        (
            f"{ENGINES}/test_contract.py",
            f"{ENGINES}/test_imprecise_streams.py",
            f"{ENGINES}/test_drawn_expressions.py",
            f"{ENGINES}/test_many_streams.py",
            "tests/runners/test_incremental_steps.py",
            "tests/runners/test_stream_changes.py",
            "tests/runners/test_stream_bounds.py",
        ),
        "(stream or cut or retained or steps) and not drawn_streams[engines] and not drawn_streams[live]",
        PLAIN,
    ),
    Area(
        "live queries",
        (
            f"{ENGINES}/test_live_agrees.py",
            f"{ENGINES}/test_live_calls.py",
            f"{ENGINES}/test_incremental.py",
            f"{ENGINES}/test_many_streams.py",
            "tests/runners/test_live.py",
        ),
        "not drawn_streams[engines] and not drawn_streams[streams]",
        PLAIN,
    ),
    Area("row patterns", (f"{ENGINES}/test_contract.py", "tests/rows"), "row", PLAIN),
    Area("Flink patterns", (f"{ENGINES}/test_contract.py", "tests/flink"), "flink", PLAIN),
    Area(
        "values",
        (f"{ENGINES}/test_functions.py", f"{ENGINES}/test_values_at_their_limits.py", "tests/language"),
        environment=PLAIN,
    ),
    Area("values beside Spark", ("tests/spark/test_functions.py", "tests/spark/test_values_as_values.py"), first=3),
    Area("streams on Spark", ("tests/spark/test_stream.py", "tests/spark/test_stream_state.py"), wanted=300, first=2),
    Area("batches on Spark", ("tests/spark/test_batch.py", "tests/spark/test_uncertain.py"), wanted=300, first=2),
    Area("cells of the matrix", ("tests/verification",), environment=PLAIN),
    Area("the reference", ("tests/reference",), environment=PLAIN),
    Area("models, plans and diagnoses", ("tests/model", "tests/plan", "tests/why", "tests/runners"), environment=PLAIN),
)
