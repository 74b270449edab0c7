"""What decides the matches of a stream's queries, so that a state is continued only by what may continue it.

Every query has *aspects*: its text, the columns it reads, the model, the scoring and so on, each as a short digest. A
state keeps them with the query's name. A query whose aspects are the same goes on; another one begins with the next
events, whatever its name; and one that has no name, being the only one, is refused with the aspects that changed.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import logging
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from cepheid.errors import DataError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.functions import find_function
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.checksums import CHECKPOINT, checked_text, text_with_checksum
from cepheid.runners.worker_plans import WorkerPlan

VERSION = 4  # of the format of the state
ALONE = ""  # the name of a query that has none
UNREADABLE_RECORD = (ValueError, TypeError, KeyError, AttributeError, DataError)
_log = logging.getLogger("cepheid.stream")
# Options that decide what is found.
_DECIDING = ("missing_last", "confidence", "probabilities", "unit", "max_width", "max_cost", "tolerance")


@dataclass(frozen=True)
class Known:
    """A query as a state knows it."""

    place: int  # what it carries from step to step lies under this number
    aspects: Mapping[str, str]
    since: int | None = None  # it has been shown all events after this time; None: from the beginning


@dataclass(frozen=True)
class Fingerprint:
    """What a state belongs to."""

    shards: int
    keys: tuple[str, ...] = ()
    queries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # the aspects of each
    earlier: frozenset[str] = frozenset()  # what earlier versions would have written

    def begun(self) -> dict[str, Known]:
        """The queries at the beginning of a stream."""
        return {name: Known(place, aspects) for place, (name, aspects) in enumerate(self.queries.items())}

    def spread(self) -> dict[str, Any]:
        """How events are dealt to shards, as it is stored."""
        return {"shards": self.shards, "keys": list(self.keys)}

    def check_spread(self, told: Mapping[str, object]) -> None:
        """An error if the state was dealt to shards in another way: then it lies in the wrong ones."""
        for name, value in self.spread().items():
            if told.get(name, value) != value:
                raise DataError(
                    f"the checkpoint was written with {name}={told[name]!r}, which is {value!r} now: "
                    "its events are in other shards",
                    hint=f"go back to {name}={told[name]!r}, or start a new checkpoint",
                )

    def went_on(self, known: Mapping[str, Known], newest: int | None) -> dict[str, Known]:
        """The queries as they go on from a state: unchanged ones as they were, others from the newest time on."""
        if (ALONE in known) != (ALONE in self.queries):
            raise DataError(
                "the checkpoint was written by "
                + ("one query without a name" if ALONE in known else "queries with names"),
                hint="go back to that, or start a new checkpoint",
            )
        place = 1 + max((each.place for each in known.values()), default=-1)
        found = {}
        for name, aspects in self.queries.items():
            old = known.get(name)
            if old is not None and old.aspects == aspects:
                found[name] = old
                continue
            if old is not None and name == ALONE:
                changed = changes(old.aspects, aspects)
                raise DataError(
                    f"the checkpoint belongs to another query: changed since it was written: {', '.join(changed)}",
                    hint="go back to what it was, start a new checkpoint, or name queries: those can be added later",
                )
            found[name] = Known(place, aspects, newest)
            place += 1
        return found


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The aspects in which two queries differ.

    >>> changes({"text": "1", "model": "2"}, {"text": "1", "model": "3", "scoring": "4"})
    ['model', 'scoring']
    """
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def fingerprint(shipments: Iterable[WorkerPlan], shards: int, more: Mapping[str, object] | None = None) -> Fingerprint:
    """What must stay the same for a state to make sense; `more` are options that decide results before the plan."""
    shipped = list(shipments)
    keys = tuple(sorted(shipped[0].plan.exchange.keys)) if shipped else ()
    queries = {worker_plan.name or ALONE: aspects(worker_plan.plan, more) for worker_plan in shipped}
    return Fingerprint(shards, keys, queries, earlier_fingerprints(shipped, shards))


def recorded_shards(record: str | None) -> int | None:
    """The number of shards of the states that are parted by a key, as the record of a checkpoint has it.

    >>> recorded_shards('{"states": [{"shards": 1, "keys": []}, {"shards": 16, "keys": ["id"]}]}')
    16
    """
    try:
        told = [each["shards"] for each in recorded_states(record or "{}") if each["keys"]]
    except UNREADABLE_RECORD:
        return None
    known = [each for each in told if isinstance(each, int) and each > 0]
    return max(known, default=None)


def recorded_states(record: str) -> list[Any]:
    """The states that the record of a checkpoint names."""
    told: list[object] = json.loads(checked_text(record, "the record of the checkpoint", CHECKPOINT))["states"]
    return told


def new_record(prints: Sequence[Fingerprint], old: str | None, adopted: int | None = None) -> str:
    """The record of a checkpoint: what its states belong to. An error if they cannot go on with these queries.

    States that are parted by a key have the number of shards that was adopted from the checkpoint, if one was.
    """
    if adopted is not None:
        prints = [replace(each, shards=adopted) if each.keys else each for each in prints]
    written = [
        {**each.spread(), "queries": {name: dict(known) for name, known in each.queries.items()}} for each in prints
    ]
    try:
        earlier = recorded_states(old) if old is not None else None
        spreads = [(each["shards"], tuple(each["keys"])) for each in earlier or ()]
        queries = [{name: Known(0, known) for name, known in each["queries"].items()} for each in earlier or ()]
    except UNREADABLE_RECORD:
        _log.warning("the record of the checkpoint is damaged; it is written again, and each state is checked")
        earlier = None
    if earlier is not None:
        if len(earlier) == len(prints):
            for each, told in zip(prints, earlier, strict=True):
                each.check_spread(told)
        if spreads != [(each.shards, each.keys) for each in prints]:
            raise DataError(
                f"the checkpoint holds {len(spreads)} states, spread by {[list(keys) for _, keys in spreads]}; "
                f"these queries need {len(prints)}, by {[list(each.keys) for each in prints]}",
                hint="give queries with other keys a stream and a checkpoint of their own",
            )
        for each, known in zip(prints, queries, strict=True):
            each.went_on(known, None)
            _tell_changes(known, each)
    return text_with_checksum(json.dumps({"version": VERSION, "states": written}, indent=1))


def _tell_changes(known: Mapping[str, Known], now: Fingerprint) -> None:
    for name in sorted(known.keys() | now.queries.keys()):
        if name not in known:
            _log.warning("query '%s' is new: it matches only events that are newer than all events so far", name)
        elif name not in now.queries:
            _log.warning("query '%s' was removed; its state is deleted", name)
        elif changed := changes(known[name].aspects, now.queries[name]):
            message = "query '%s' has changed (%s): it starts over, with events that are newer than all events so far"
            _log.warning(message, name, ", ".join(changed))


def aspects(plan: Plan, more: Mapping[str, object] | None = None) -> dict[str, str]:
    """What decides the matches of a plan, each as a digest, under the name a user knows it by."""
    bound, schema = plan.bound, plan.bound.schema
    roles = (schema.time, schema.type, schema.time_unit, schema.tiebreak, schema.lower, schema.upper, schema.existence)
    told: dict[str, object] = {
        "text": bound.stored_text,
        "columns": [(name, kind.name) for name, kind in schema.columns],
        "roles of columns": roles,
    }
    if bound.window is not None:
        told["window"] = (bound.window.length, bound.window.events)
    if schema.lacks:
        told["lacks"] = schema.lacks
    if plan.model is not None:
        from cepheid.model.loss_model import model_to_json  # most queries have none

        told["model"] = model_to_json(plan.model)
    if plan.scoring != "exact":
        told["scoring"] = plan.scoring
    for name in _DECIDING:
        if plan.options.get(name) not in (None, False):
            told[name] = plan.options.get(name)
    if plan.limits.truncate:
        told["limits"] = (plan.limits.max_matches, plan.limits.max_partial_matches, plan.limits.timeout)
    for name in sorted(_called(bound)):
        found = find_function(name)
        if found is not None and found.user:
            told[f"function {name}"] = body_of(found.call)
    told |= {name: value for name, value in (more or {}).items() if value is not None and value != ()}
    return digests(told)


def digests(told: Mapping[str, object]) -> dict[str, str]:
    """What decides the matches of a query, each as a digest, under the name a user knows it by."""
    return {name: _digest(value) for name, value in told.items()}


def body_of(call: Callable[..., object]) -> str:
    """What a function of the user does, as text that is the same in another process; not where it was written.

    >>> body_of(lambda x: x + 1) == body_of(lambda x: x + 2)
    False
    """
    plain = inspect.unwrap(getattr(call, "py_func", call))
    code = getattr(plain, "__code__", None)
    if code is None:
        return repr(type(plain))
    closed = repr([*(cell.cell_contents for cell in plain.__closure__ or ()), plain.__defaults__])
    told = repr((_instructions(code), closed))
    try:
        return ast.dump(ast.parse(textwrap.dedent(inspect.getsource(plain)))) + closed + _constants(code)
    except (OSError, TypeError, SyntaxError):
        return told


def _instructions(code: CodeType) -> tuple[object, ...]:
    inner = [_instructions(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return (code.co_code.hex(), code.co_names, code.co_varnames, inner)


def _constants(code: CodeType) -> str:
    """Tells lambdas of one line apart."""
    return repr([each for each in code.co_consts if not isinstance(each, CodeType)]) + repr(code.co_names)


def _called(bound: BoundQuery) -> set[str]:
    expressions = [bound.where] if bound.where is not None else []
    expressions += [expression for _, expression in bound.returns or ()]
    return {node.function for expression in expressions for node in s.walk(expression) if isinstance(node, s.Call)}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


# --- earlier versions -----------------------------------------------------------------------------------------------


def earlier_fingerprints(shipments: Iterable[WorkerPlan], shards: int) -> frozenset[str]:
    """What version 2 of the format wrote for these queries: one digest of all, which had no model and no options.

    Its first writers did not know two of the roles of columns, which the digest shows.
    """
    shipped = list(shipments)
    return frozenset(_earlier(shipped, shards, roles) for roles in (True, False))


def _earlier(shipments: Iterable[WorkerPlan], shards: int, roles: bool) -> str:
    told = ["2", str(shards)]
    for each in shipments:
        bound = each.plan.bound
        schema = _earlier_schema(bound.schema, roles)
        told += [str(each.name), bound.stored_text, schema, str(bound.window), str(each.schema)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _earlier_schema(schema: Schema, roles: bool) -> str:
    fields = ["columns", "time", "type", "time_unit", "types", "tiebreak", "lower", "upper"]
    fields += ["lacks", "existence"] if roles else []
    return f"Schema({', '.join(f'{name}={getattr(schema, name)!r}' for name in fields)})"
