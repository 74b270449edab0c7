"""Errors in definitions and in the arguments of functions."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

DEFINITIONS_AND_FUNCTIONS = Section(
    "Definitions and functions",
    (
        Kind(
            "duplicate-definition",
            "A name is defined twice.",
            Example(
                "PATTERN SEQ(small a, small b) DEFINE small AS price < 1, small AS price < 2",
                "line 1, column 58: 'small' is defined twice",
                "                                                         ^^^^^^^^^^^^^^^^^^ join the conditions with AND or OR",
            ),
        ),
        Kind(
            "unused-definition",
            "No component of the pattern uses a definition.",
            Example(
                "PATTERN SEQ(small a, Stock b) DEFINE smal AS price < 1",
                "line 1, column 38: no component takes 'smal'",
                "                                     ^^^^^^^^^^^^^^^^^ did you mean small?",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) DEFINE cheap AS price < 1",
                "line 1, column 38: no component takes 'cheap'",
                "                                     ^^^^^^^^^^^^^^^^^^ write cheap x in the pattern, or leave the definition out",
            ),
        ),
        Kind(
            "definition-of-several",
            "A definition is a condition on the attributes of one event, by their names alone.",
            Example(
                "PATTERN SEQ(small a, Stock b) DEFINE small AS price < b.price",
                "line 1, column 55: 'b' in the definition of 'small'",
                "                                                      ^ write the attribute alone, and conditions on other events into WHERE",
            ),
            Example(
                "PATTERN SEQ(small+ a[], Stock b) DEFINE small AS sum(price) < 3",
                "line 1, column 50: a definition is a condition on a single event",
                "                                                 ^^^^^^^^^^ write it into WHERE",
            ),
        ),
        Kind(
            "not-constant",
            "Patterns, units and types of functions are written into the query, so that they can be checked before it runs.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE regexp_extract(a.name, b.name) = 'x'",
                "line 1, column 60: argument 2 of regexp_extract() must be a constant",
                "                                                           ^^^^^^ it is written regexp_extract(s, regex, group)",
            ),
        ),
        Kind(
            "bad-argument",
            "A constant is not valid for the function.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.name RLIKE '(x'",
                "line 1, column 50: missing ): (x",
                "                                                 ^^^^ it is written rlike(s, regex)",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE CAST(a.name AS money) > 3",
                "line 1, column 52: no type 'money': it is one of bigint, double, decimal(10, 2), string, boolean, timestamp, date",
                "                                                   ^^^^^ it is written CAST(x AS type)",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE timestampdiff(fortnight, a.ts, b.ts) > 1",
                "line 1, column 51: no unit of time 'fortnight': it is one of microsecond, millisecond, second, minute, hour, day, week, month, quarter, year",
                "                                                  ^^^^^^^^^ it is written timestampdiff(minute, start, end)",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE regexp_extract(a.name, '([a-z]+)', 2) = 'x'",
                "line 1, column 60: the expression has no group 2",
                "                                                           ^^^^^^^^^^ it is written regexp_extract(s, regex, group)",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.name LIKE 'a\\b'",
                "line 1, column 49: '\\b' in a LIKE pattern: a backslash stands before %, _ or another backslash",
                "                                                ^^^^^ it is written like(s, pattern)",
            ),
        ),
    ),
)
