"""`cepheid simulate`: one command per scenario, its options read off the generator's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from cepheid.cli.messages import out
from cepheid.cli.options import Overwrite
from cepheid.cli.outputs import check_outputs, replacing
from cepheid.cli.result_files import check_output, write_table
from cepheid.errors import CepheidError
from cepheid.simulate import SCENARIOS, Gap, Simulation

EXAMPLES = {
    "rfid": "cepheid simulate rfid 10000 --loss Register=0.1 --timestamps -o events.parquet --truth truth.parquet",
    "stocks": "cepheid simulate stocks 1000000 --up 0.7 -o ticks.parquet --query trend.cepheid",
    "correlated": "cepheid simulate correlated 100000 --rare-frequency 0.01 -o stocks.parquet",
    "cluster": "cepheid simulate cluster 6800 --nodes 10 -o log.parquet --truth overloads.parquet",
    "clinic": "cepheid simulate clinic 100000 --extra 0.05 -o doses.csv --truth overdoses.csv",
    "supply-chain": "cepheid simulate supply-chain 100000 --sites 80 -o shipments.parquet",
    "sase": "cepheid simulate sase 1000000 --types 20 --domains 1000,20,10 -o events.parquet",
    "time": "cepheid simulate time 100000 --half-width 5 -o series.parquet",
}

app = typer.Typer(
    no_args_is_help=True,
    help="Generate a stream with known truth, to try queries on.\n\n"
    f"Example:\n\n    {EXAMPLES['rfid']}\n\nThe same seed gives the same stream.",
)

_Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="PATH", help="Output path of the events: .parquet, .csv, .jsonl, ...")
]
_Truth = Annotated[Path | None, typer.Option("--truth", metavar="PATH", help="Output path of what really happened.")]
_Query = Annotated[Path | None, typer.Option("--query", metavar="PATH", help="Output path of the paper's query.")]


def scenario_command(name: str, generate: Callable[..., Simulation]) -> Callable[..., None]:
    """A command with an option for every parameter of a generator."""
    size, *others = inspect.signature(generate, eval_str=True).parameters.values()

    def command(output: Path, truth: Path | None, query: Path | None, overwrite: bool, **given: object) -> None:
        arguments = {p.name: option_value(p, given[p.name]) for p in others if given[p.name] is not None}
        for path in (output, truth):
            if path is not None:
                check_output(path)
        check_outputs({"--output": output, "--truth": truth, "--query": query}, (), overwrite=overwrite)
        simulation = generate(given[size.name], **arguments)
        if truth is not None and simulation.truth is None:
            raise CepheidError(f"the scenario {name} has no truth: it is a workload only", hint="leave --truth out")
        write_table(_flat_enough(simulation.events, output), output, overwrite=overwrite)
        if truth is not None and simulation.truth is not None:
            write_table(simulation.truth, truth, overwrite=overwrite)
        if query is not None:
            with replacing(query) as beside:
                beside.write_text(simulation.query + "\n", encoding="utf-8")
        out.print(simulation.description)
        out.print(f"{simulation.events.num_rows} events in {output}", soft_wrap=True)
        if truth is not None and simulation.truth is not None:
            out.print(f"{simulation.truth.num_rows} rows of truth in {truth}", soft_wrap=True)
        if query is not None:
            out.print(f"the query in {query}", soft_wrap=True)

    parameters = [
        _parameter("output", _Output),
        _parameter("truth", _Truth, None),
        _parameter("query", _Query, None),
        _parameter("overwrite", Overwrite, False),
        _parameter(size.name, Annotated[int, typer.Argument(help=f"How many {size.name}.")], size.default),
        *(_parameter(p.name, _annotation(p), p.default if isinstance(p.default, bool) else None) for p in others),
    ]
    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    command.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in keyword}
    example = EXAMPLES.get(name, f"cepheid simulate {name} 10000 -o events.parquet --query query.cepheid")
    command.__doc__ = f"{inspect.getdoc(generate)}\n\nExample:\n\n    {example}\n"
    return command


def _flat_enough(table: pa.Table, path: Path) -> pa.Table:
    from cepheid.cli.result_files import flat

    return flat(table) if path.suffix.lower() == ".csv" else table


def _parameter(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(parameter: inspect.Parameter) -> Any:
    flag = "--" + parameter.name.replace("_", "-")
    if isinstance(parameter.default, bool):
        return Annotated[bool, typer.Option(flag)]
    shown = f"Default: {_default_text(parameter.default)}." if parameter.default is not None else None
    return Annotated[str | None, typer.Option(flag, metavar=_metavar(parameter), help=shown, show_default=False)]


def _metavar(parameter: inspect.Parameter) -> str:
    match parameter.default:
        case Gap():
            return "GAP"
        case tuple():
            return "N,N,..."
        case str():
            return "WORD"
        case float() if Mapping in _origins(parameter.annotation):
            return "P or NAME=P,..."
        case float():
            return "NUMBER"
    return "N"


def _origins(annotation: object) -> set[object]:
    arguments = getattr(annotation, "__args__", ())
    return {getattr(part, "__origin__", part) for part in arguments}


def _default_text(default: object) -> str:
    match default:
        case Gap(kind=kind, mean=mean, shape=shape):
            return f"{kind}:mean={mean:g}" + (f",shape={shape:g}" if kind in ("gamma", "lognormal") else "")
        case tuple():
            return ",".join(str(item) for item in default)
    return str(default)


def option_value(parameter: inspect.Parameter, given: object) -> Any:
    """The text of an option as the generator takes it: numbers, lists, `NAME=P,...`, `exponential:mean=60`."""
    if not isinstance(given, str):
        return given
    flag = "--" + parameter.name.replace("_", "-")
    default = parameter.default
    try:
        if isinstance(default, Gap):
            return parse_gap(given)
        if isinstance(default, tuple):
            return tuple(int(part) for part in given.split(","))
        if isinstance(default, str):
            return given
        if "=" in given and Mapping in _origins(parameter.annotation):
            return {name: float(value) for name, _, value in (part.partition("=") for part in given.split(","))}
        whole = int in (parameter.annotation, *_origins(parameter.annotation)) and not isinstance(default, float)
        return int(given) if whole else float(given)
    except ValueError:
        example = _default_text(default) if default is not None else "100"
        raise CepheidError(f"{flag} {given}: not a valid value", hint=f"write it like {flag} {example}") from None


def parse_gap(text: str) -> Gap:
    """A waiting time as text.

    >>> parse_gap("gamma:mean=900,shape=2")
    Gap(kind='gamma', mean=900.0, shape=2.0)
    """
    kind, _, rest = text.partition(":")
    numbers = {name: float(value) for name, _, value in (part.partition("=") for part in rest.split(","))}
    if not {"mean"} <= set(numbers) <= {"mean", "shape"}:
        raise ValueError(text)
    return Gap(kind, **numbers)


for _name, _generate in SCENARIOS.items():
    app.command(_name)(scenario_command(_name, _generate))
