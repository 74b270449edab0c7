"""Errors in the other clauses: windows, probabilities, RETURN, OUTPUT and SUMMARISE."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

WINDOWS = Section(
    "Windows",
    (
        Kind(
            "bad-window",
            "The length of a window is missing or invalid.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 0 seconds",
                "line 1, column 40: a window must be longer than zero",
                "                                       ^ for example WITHIN 1 hour",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN W",
                "line 1, column 33: 'soon' is not a length of time",
                "                                ^^^^^^^^ pass a number, a timedelta, or a text such as '12 hours'",
                options={"parameters": {"W": "soon"}},
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN W",
                "line 1, column 33: [1] is not a length of time",
                "                                ^^^^^^^^ pass a number, a timedelta, or a text such as '12 hours'",
                options={"parameters": {"W": [1]}},
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN W",
                "line 1, column 33: -1 is negative",
                "                                ^^^^^^^^ pass a number, a timedelta, or a text such as '12 hours'",
                options={"parameters": {"W": -1}},
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 1e18 days",
                "line 1, column 33: a window longer than any stream",
                "                                ^^^^^^^^^^^^^^^^ leave WITHIN out",
            ),
            Example(
                'seq(event("Login"), event("Payment")).within(hours=1, minutes=30)',
                "a window has one length; within(500), within(hours=12), within(events=100) or within(timedelta(...))",
            ),
            Example(
                'seq(event("Login"), event("Payment")).within("1 hour")',
                "a window cannot last '1 hour'; within(500), within(hours=12), within(events=100) or within(timedelta(...))",
            ),
            Example('seq(event("Login"), event("Payment")).within(timedelta(0))', "a window must be longer than zero"),
        ),
        Kind(
            "unknown-unit",
            "No unit of time has that name. Months and years are not supported, because their length varies.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 5 minuts",
                "line 1, column 42: no time unit 'minuts'",
                "                                         ^^^^^^ did you mean minutes?",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN W",
                "line 1, column 33: '5 moons': no time unit 'moons'",
                "                                ^^^^^^^^ seconds, minutes, hours, days, ... or EVENTS",
                options={"parameters": {"W": "5 moons"}},
            ),
            Example(
                'seq(event("Login"), event("Payment")).within(months=1)',
                "no time unit 'months'; one of nanoseconds, microseconds, milliseconds, seconds, minutes, hours, days, weeks, events",
            ),
        ),
        Kind(
            "no-unit",
            "The time column holds timestamps, so a window needs a unit.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 500",
                "line 1, column 33: column 'ts' is a timestamp, so the window needs a unit",
                "                                ^^^^^^^^^^ write WITHIN 500 seconds, for example",
            ),
        ),
        Kind(
            "unknown-time-unit",
            "The time column holds plain numbers, and it is not known what they count.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 5 minutes",
                "line 1, column 33: the window is in minutes, but it is not known what one step of column 'ts' is",
                "                                ^^^^^^^^^^^^^^^^ pass time_unit='ms' (or what 'ts' counts), or write a plain number",
                options={"clock": "integer"},
            ),
        ),
    ),
)

PROBABILITIES = Section(
    "Probabilities",
    (
        Kind(
            "bad-probability",
            "A probability is not between 0 and 1, or a threshold is 0.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 1 hour THRESHOLD 5",
                "line 1, column 57: a probability of 5 is outside [0, 1]",
                "                                                        ^ write a number from 0 to 1, or a percentage such as 5%",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 1 hour THRESHOLD 0",
                "line 1, column 47: a threshold of 0 is outside (0, 1]",
                "                                              ^^^^^^^^^^^ write a number above 0: at 0, everything that could have happened is reported",
            ),
            Example(
                'seq(event("Login"), event("Payment")).confidence(80)',
                "80 is not a probability; pass a number from 0 to 1",
            ),
            Example(
                'seq(event("Login"), event("Payment")).threshold(0)',
                "a threshold of 0 is outside (0, 1]; pass a number above 0",
            ),
        ),
        Kind(
            "threshold-without-within",
            "Missing events need a window.",
            Example(
                "PATTERN SEQ(Login a, Payment b) THRESHOLD 5%",
                "line 1, column 22: a query with THRESHOLD needs a window",
                "                     ^^^^^^^^^ add WITHIN, for example WITHIN 12 hours",
            ),
        ),
        Kind(
            "threshold-event-window",
            "Missing events need a window of time, because missing events cannot be counted.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 10 EVENTS THRESHOLD 5%",
                "line 1, column 33: missing events need a window of time",
                "                                ^^^^^^^^^^^^^^^^ give the window a length of time",
            ),
        ),
        Kind(
            "threshold-strategy",
            "Contiguity leaves no room for missing events.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE strict_contiguity(a, b) { } WITHIN 1 hour THRESHOLD 5%",
                "line 1, column 39: strict_contiguity requires events without gaps, and a missing event is a gap",
                "                                      ^^^^^^^^^^^^^^^^^^^^^^^ write skip_till_next_match or skip_till_any_match",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE skip_till_next_match(b) WITHIN 1 hour THRESHOLD 5%",
                "line 1, column 39: strategies for single steps cannot be combined with missing events",
                "                                      ^^^^^^^^^^^^^^^^^^^^^^^ use one strategy for all steps",
            ),
        ),
        Kind(
            "no-own-predicate",
            "With THRESHOLD, every component needs a type or a condition on itself alone (AYAC section 2.2).",
            Example(
                "SEQUENCE(x, !y, z) WHERE x.name = 'A' AND z.name = 'C' AND x.id = y.id AND x.id = z.id WITHIN 1 hour THRESHOLD 5%",
                "line 1, column 13: 'y' has no condition on itself alone",
                "            ^^ add one such as y.reader = 'A', or a type",
                line="SEQUENCE(x, !y, z) WHERE x.name = 'A' AND z.name = 'C' AND x.id = y.id AND x.id = z.id WITHIN 1 hour…",
            ),
        ),
    ),
)

RETURN_AND_OUTPUT = Section(
    "RETURN and OUTPUT",
    (
        Kind(
            "negated-in-return",
            "RETURN names a negated component.",
            Example(
                "PATTERN SEQ(Login a, !(Stock b), Payment c) RETURN a, b.id",
                "line 1, column 55: 'b' is the event that must not happen",
                "                                                      ^^^^ return the events that did happen",
            ),
        ),
        Kind(
            "duplicate-column",
            "Two returned columns have the same name.",
            Example(
                "PATTERN SEQ(Login a, Payment b) RETURN a.id, b.id",
                "line 1, column 46: two returned columns are called 'id'",
                "                                             ^^^^ rename one with AS",
            ),
        ),
        Kind(
            "unknown-output",
            "No output mode has that name.",
            Example(
                "PATTERN SEQ(Login a, Payment b) OUTPUT FIRST",
                "line 1, column 40: no output mode 'FIRST'",
                "                                       ^^^^^ one of ALL, NON-OVERLAP, MAXIMAL, PARTIAL, TOP k BY CONFIDENCE",
            ),
        ),
        Kind(
            "bad-partial",
            "OUTPUT PARTIAL reports runs whose window has passed, so it needs a window of time; some patterns do not support it.",
            Example(
                "PATTERN SEQ(Login a, Payment b) OUTPUT PARTIAL",
                "line 1, column 33: OUTPUT PARTIAL needs a window of time",
                "                                ^^^^^^^^^^^^^^ add WITHIN 1 hour, for example: a partial match times out when the window has passed",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 1 hour RETURN a.id OUTPUT PARTIAL",
                "line 1, column 59: OUTPUT PARTIAL returns events",
                "                                                          ^^^^^^^^^^^^^^ leave RETURN and SUMMARISE out, and compute with the rows",
            ),
        ),
        Kind(
            "bad-forecast",
            "FORECAST returns partial matches of a sequence with a window of time; some queries do not support it.",
            Example(
                "PATTERN SEQ(Login a, Payment b) FORECAST 80%",
                "line 1, column 22: FORECAST needs a window of time",
                "                     ^^^^^^^^^ add WITHIN 1 hour, for example",
            ),
        ),
        Kind(
            "bad-output",
            "TOP needs a count, and only TOP takes one.",
            Example(
                "PATTERN SEQ(Login a, Payment b) OUTPUT TOP",
                "line 1, column 33: only TOP takes a count, and it needs one",
                "                                ^^^^^^^^^^ OUTPUT TOP 5 BY CONFIDENCE",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) OUTPUT TOP 0",
                "line 1, column 44: TOP needs a whole number above 0",
                "                                           ^ for example TOP 10",
            ),
            Example('seq(event("Login"), event("Payment")).top(0)', "top() takes a whole number above 0, not 0"),
        ),
    ),
)

TOTALS = Section(
    "SUMMARISE",
    (
        Kind(
            "summarise-and-return",
            "A query has both SUMMARISE and RETURN.",
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE count(*) RETURN a",
                "line 1, column 33: SUMMARISE returns totals, and RETURN returns matches",
                "                                ^^^^^^^^^^^^^^^^^^ leave one out",
            ),
        ),
        Kind(
            "unknown-total",
            "No total has that name.",
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE total(b.price)",
                "line 1, column 43: no total 'total'",
                "                                          ^^^^^^^^^^^^^^ one of count, sum, avg, min, max, approximate_count",
            ),
        ),
        Kind(
            "bad-total",
            "A total does not use the events of one variable, or cannot use its values.",
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE sum(*)",
                "line 1, column 43: sum(*) is not defined: * only counts matches",
                "                                          ^^^^^^ name an attribute, for example sum(a.x)",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE sum(a.price * b.price)",
                "line 1, column 43: a total aggregates the events of one variable",
                "                                          ^^^^^^^^^^^^^^^^^^^^^^ name one variable in it",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE sum(b.name)",
                "line 1, column 43: sum needs numbers",
                "                                          ^^^^^^^^^^^ name an attribute that is a number",
            ),
            Example(
                "PATTERN SEQ(Login+ a[], Payment b) SUMMARISE sum(a[1].price)",
                "line 1, column 50: a total aggregates every element of a group",
                "                                                 ^^^^ write a",
            ),
        ),
        Kind(
            "by-without-test",
            "BY names an attribute that is not in an equivalence test.",
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE count(*) BY id",
                "line 1, column 33: 'id' is not an equivalence test",
                "                                ^^^^^^^^^^^^^^^^^^^^^^^^ add [id] to WHERE",
            ),
        ),
        Kind(
            "bad-every",
            "EVERY is not a whole number of steps of the time column.",
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE count(*) EVERY 100 EVENTS",
                "line 1, column 52: EVERY takes a length of time",
                "                                                   ^^^^^^^^^^^^^^^^ write EVERY 10 minutes, for example",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) SUMMARISE count(*) EVERY 1 nanosecond",
                "line 1, column 52: EVERY is not a whole number of time steps",
                "                                                   ^^^^^^^^^^^^^^^^^^ one step of column 'ts' is one of its units",
            ),
        ),
    ),
)
