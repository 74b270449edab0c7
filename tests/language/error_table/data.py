"""Errors that show when a query meets its data."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

NAMES_AND_TYPES_OF_THE_DATA = Section(
    "Names and types of the data",
    (
        Kind(
            "unknown-type",
            "No event has that type. This is checked only if the possible types are known.",
            Example(
                "PATTERN SEQ(Login a, Paymnt b)",
                "line 1, column 22: no event type 'Paymnt'",
                "                     ^^^^^^^^ did you mean 'Payment'?",
            ),
        ),
        Kind(
            "untyped-stream",
            "The query names event types, but the stream has no type column.",
            Example(
                "PATTERN SEQ(Login a, Payment b)",
                "line 1, column 13: the stream has no event types",
                "            ^^^^^^^ pass type='...', the column that holds the event type",
                options={"type": None},
            ),
        ),
        Kind(
            "type-as-variable",
            "A type without a variable is used as a variable, so events of every type would match.",
            Example(
                "PATTERN SEQ(Login, Payment) WHERE Login.id = Payment.id",
                "line 1, column 13: 'Login' is an event type, but is used here as a variable",
                "            ^^^^^ write Login x for events of that type, or choose another variable",
            ),
        ),
        Kind(
            "unknown-attribute",
            "No column has that name.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.pric < b.price",
                "line 1, column 37: no attribute 'pric'",
                "                                    ^^^^^^ did you mean 'price'?",
            ),
        ),
        Kind(
            "bare-attribute",
            "A column is named without the event it belongs to.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE price > 3",
                "line 1, column 37: 'price' alone is ambiguous",
                "                                    ^^^^^ name the event, for example a.price",
            ),
        ),
        Kind(
            "unknown-name",
            "A word is neither a column nor a parameter.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.name = MSFT",
                "line 1, column 46: no value for 'MSFT'",
                "                                             ^^^^ write 'MSFT' in quotes, or pass parameters={'MSFT': ...}",
            ),
        ),
        Kind(
            "bad-parameter",
            "A parameter holds something that cannot be used in a query.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.name IN Finance",
                "line 1, column 47: parameter 'Finance' must hold several values",
                "                                              ^^^^^^^ pass a list",
                options={"parameters": {"Finance": "JPM"}},
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.price > T",
                "line 1, column 47: a parameter cannot be a dict",
                "                                              ^ pass a number, a text, True, False or None instead of {}",
                options={"parameters": {"T": {}}},
            ),
        ),
        Kind(
            "type-mismatch",
            "Values of these types cannot be compared or computed with.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.id = 'seven'",
                "line 1, column 44: 'seven' is not a whole number",
                "                                           ^^^^^^^ it is compared with one",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.name + 1 > 2",
                "line 1, column 37: 'a.name' is a string, not a number",
                "                                    ^^^^^^ write CAST(a.name AS DOUBLE)",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.flag > FALSE",
                "line 1, column 37: true and false have no order",
                "                                    ^^^^^^^^^^^^^^ compare them with = or !=",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE Corr(a.price, b.history) > 0.9",
                "line 1, column 42: Corr() of a number",
                "                                         ^^^^^^^ it takes a list of numbers",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.name[0] = 'x'",
                "line 1, column 44: a string cannot have as its default a whole number",
                "                                           ^",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE coalesce(a.name, 0) = 'x'",
                "line 1, column 37: coalesce() of different types",
                "                                    ^^^^^^^^^^^^^^^^^^^ CAST makes them one type",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE max(a[].history) > 1",
                "line 1, column 44: max() of a list of numbers",
                "                                           ^^^^^^^^^^^",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE [history]",
                "line 1, column 37: 'history' is a list of numbers, which cannot be compared",
                "                                    ^^^^^^^^^ name a column of numbers, strings or times",
            ),
        ),
        Kind(
            "not-a-condition",
            "A condition is needed, and this is a value.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.price AND b.price > 3",
                "line 1, column 37: a number is not a condition",
                "                                    ^^^^^^^ compare it with something",
            ),
        ),
        Kind(
            "event-as-value",
            "An event is used as if it were one of its attributes.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a = b",
                "line 1, column 37: an event is not a value",
                "                                    ^ name an attribute, such as a.x",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE avg(a) > 3",
                "line 1, column 44: avg() of events, not of values",
                "                                           ^ name an attribute, such as avg(a[].x)",
            ),
        ),
        Kind(
            "bad-time",
            "A text that is not a time is compared with a timestamp.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.ts > 'yesterday'",
                "line 1, column 44: 'yesterday' is not a date or time",
                "                                           ^^^^^^^^^^^ write it like '2026-01-31 12:00:00'",
            ),
        ),
    ),
)
