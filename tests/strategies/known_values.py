"""Expressions at which function libraries are known to differ, over the table of extreme values."""

from __future__ import annotations

from strategies.values import Drawn

_F, _G = "nanvl(f, CAST(NULL AS double))", "nanvl(g, CAST(NULL AS double))"


def _of(kind: str, *texts: str, rounded: bool = False) -> list[Drawn]:
    """Expressions that Spark reads as they are, but for numbers with an exponent and NaN."""
    return [Drawn(kind, text, _spark(text, kind), rounded) for text in texts]


def _spark(text: str, kind: str) -> str:
    said = text.replace("@f", _F).replace("@g", _G).replace("@", "").replace("e0", "D").replace("1e30", "1E30D")
    for ours, theirs in (("starts_with(", "startswith("), ("ends_with(", "endswith(")):
        said = said.replace(ours, theirs)
    narrow = said.startswith(("quarter", "weekofyear", "weekday", "length", "instr"))
    said = f"try_eval({f'CAST({said} AS bigint)' if narrow else said})"
    return f"nanvl({said}, CAST(NULL AS double))" if kind == "f" else said


KNOWN = [
    *_of("f", "round(1.005e0, 2)", "round(0.49999999999999994e0)", "round(@f, 2)", "round(@f)", "sign(@f)", "@i + @f"),
    *_of(
        "f", "@i / 2", "@f % @g", "least(@f, @g)", "greatest(@g, @f)", "CAST('1_000' AS double)", "CAST(@s AS double)"
    ),
    *_of("f", "CAST('inf' AS double)", "exp(710e0)", "power(0, -1)", "atan2(-0.0e0, -1e0)", "nullif(@f, @g)"),
    *_of("f", "exp(@f)", "power(@f, -1)", "ln(@f)", rounded=True),
    *_of("i", "@i + @i", "@i * @j", "-@i", "abs(@i)", "floor(1e30)", "ceil(@f)", "CAST(1e30 AS bigint)", "@i % @j"),
    *_of("i", "CAST(@f AS bigint)", "CAST(@u AS bigint)", "mod(@i, 5)", "pmod(@i, 5)", "round(@i, -1)"),
    *_of("i", "timestampdiff(month, @u, @v)", "quarter(@u)", "weekofyear(@u)", "weekday(@u)"),
    *_of("s", "upper('straße')", "upper(@s)", "lower(@s)", "trim(@s)", "substring(@s, -50, 3)", "replace(@s, '', 'z')"),
    *_of("s", "CAST(1.50 AS string)", "least(@s, @t)", "greatest(@s, @t)", "concat(@i, @d)", "CAST(@f AS string)"),
    *_of("s", "get_json_object(@s, '$.a')", "get_json_object(@s, '$.a[1].b')", "get_json_object(@s, '$')"),
    *_of("b", "@f IN (0.0, 1.0)", "@i > 1.5", "@i < @f", "@i = @f", "CAST('y' AS boolean)", "CAST(@s AS boolean)"),
    *_of("b", "array_contains(@l, -1)", "array_contains(@l, 5)", "@s RLIKE '^(a+)+$'", "@i = @s", "@s = @i"),
    *_of(
        "b", "@f = @g", "@f > 1", "isnan(@f)", "ends_with(@s, 'b')", "starts_with(@s, 'a')", "@u >= DATE '2024-01-31'"
    ),
    *_of("b", "@u = TIMESTAMP '2024-01-31 12:00:00.123456'", "@d = 1.5", "@w > @i", "@x = 99999999999999999999.0"),
    *_of("y", "CAST(@u AS date)", "CAST(@s AS date)", "DATE '2024-02-29'"),
    *_of("u", "date_trunc('millisecond', @u)", "TIMESTAMP '2024-02-29 12:00:00'", "CAST(@s AS timestamp)"),
    *_of("d", "@d * @d", "@w + @d", "@d / 3", "@w / @d", "@w * @w", "@x + 1", "@x * @x", "@d % @w", "1.50 + @d"),
]
