"""Functions between instants and what the clocks of a zone show. Binding puts them around functions of times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import DataError
from cepheid.language.library.conversions import instant_of_text
from cepheid.language.library.function import STRING, TIMES, Function
from cepheid.language.schema import DataType
from cepheid.language.zones import Int64s, to_instant, to_instants, to_wall, to_walls, zone_called

TO_WALL, TO_INSTANT, READ = "local_time", "local_time_at", "timestamp_at"


def _wrong_zone(constants: Sequence[object]) -> str | None:
    try:
        zone_called(str(constants[0]))
    except DataError as error:
        return error.message
    return None


def _columnwise(compute: Callable[..., Int64s]) -> Callable[..., object]:
    def columnwise(column: Any, zone: str, *near: object) -> Any:
        if isinstance(column, pa.Scalar):
            return columnwise(pa.array([column.as_py()], pa.int64()), zone, *near)[0]
        values = np.asarray(pc.fill_null(column, 0).to_numpy())
        beside = [np.broadcast_to(np.asarray(_filled(each)), values.shape) for each in near]
        mask = np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool) if column.null_count else None
        return pa.array(compute(values, zone, *beside), pa.int64(), mask=mask)

    return columnwise


def _filled(column: object) -> Any:
    filled = pc.fill_null(column, 0)
    return filled.as_py() if isinstance(filled, pa.Scalar) else filled.to_numpy()


def _clocks(F: Any, x: object, zone: str) -> Any:
    return F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(x), zone))


def _instants(F: Any, x: object, zone: str, near: object = None) -> Any:
    found = F.unix_micros(F.to_utc_timestamp(F.timestamp_micros(x), zone))
    if near is None:
        return found
    same = x - (_clocks(F, near, zone) - near)
    return F.when(_clocks(F, same, zone) == x, same).otherwise(found)


FUNCTIONS: tuple[Function, ...] = (
    Function(
        "local_time(ts, 'Asia/Tokyo')",
        lambda time, zone: to_wall(time, zone_called(zone)),
        (TIMES, STRING),
        DataType.TIME,
        constants=(1,),
        wrong=_wrong_zone,
        columnwise=_columnwise(lambda times, zone: to_walls(times, zone_called(zone))),
        spark=_clocks,
        instant=True,
        gives_instant=False,
        says="the clock time of a zone at an instant, without a zone",
    ),
    Function(
        "local_time_at(ts, 'Asia/Tokyo')",
        lambda wall, zone, near=None: to_instant(wall, zone_called(zone), near),
        (TIMES, STRING, TIMES),
        DataType.TIME,
        most=3,
        constants=(1,),
        wrong=_wrong_zone,
        columnwise=_columnwise(lambda walls, zone, near=None: to_instants(walls, zone_called(zone), near)),
        spark=_instants,
        gives_instant=True,
        says="the instant of a clock time in a zone",
    ),
    Function(
        "timestamp_at(text, 'Asia/Tokyo')",
        lambda text, zone: instant_of_text(text, zone_called(zone)),
        STRING,
        DataType.TIME,
        constants=(1,),
        wrong=_wrong_zone,
        gives_instant=True,
        says="the instant of a text, in the zone unless the text has an offset",
    ),
)
