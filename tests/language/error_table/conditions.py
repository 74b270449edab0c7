"""Errors in WHERE: conditions, strategies, Kleene plus."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

CONDITIONS = Section(
    "Conditions",
    (
        Kind(
            "unknown-variable",
            "A name is used as a variable that the pattern does not declare.",
            Example(
                "PATTERN SEQ(Login login, Payment pay) WHERE logn.id = pay.id",
                "line 1, column 45: no variable 'logn'",
                "                                            ^^^^ did you mean login?",
            ),
        ),
        Kind(
            "unknown-function",
            "No function of that name is built in or registered.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE Cor(a.history, b.history) > 0.9",
                "line 1, column 37: no function 'Cor'",
                "                                    ^^^^^^^^^^^^^^^^^^^^^^^^^ did you mean corr?",
            ),
        ),
        Kind(
            "wrong-arguments",
            "A function is called with too few or too many arguments.",
            Example(
                "PATTERN Stock a WHERE abs(a.price, 2) > 1",
                "line 1, column 23: abs() takes 1 argument, not 2",
                "                      ^^^^^^^^^^^^^^^ it is written abs(x)",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE max(a[].price, b.price) > 1",
                "line 1, column 40: max() takes one argument",
                "                                       ^^^^^^^^^^^^^^^^^^^^^^^ use least(...) or greatest(...) for several values",
            ),
        ),
        Kind(
            "equivalence-as-value",
            "An equivalence test is used as if it were a value.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE ([id] = TRUE)",
                "line 1, column 40: an equivalence test is a condition, not a value",
                "                                       ^^^^ join it to other conditions with AND, OR, NOT",
            ),
        ),
        Kind(
            "event-as-list",
            "IN is followed by an event.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE b.id IN a",
                "line 1, column 47: 'a' is an event, not a list of values",
                "                                              ^ write the values in parentheses, or pass a list as parameter under another name",
            ),
        ),
        Kind(
            "too-many-combinations",
            "The normal form of the condition would grow beyond 512 clauses.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE " + " OR ".join(f"(a.id = {n} AND b.id = {n})" for n in range(10)),
                "line 1, column 37: AND and OR expand to more than 512 combinations",
                "                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ write IN (...) for many values of one attribute, or split the query",
                line="…(Stock a, Stock b) WHERE (a.id = 0 AND b.id = 0) OR (a.id = 1 AND b.id = 1) OR (a.id = 2 AND b.id = …",
            ),
        ),
    ),
)

EVENT_SELECTION_STRATEGIES = Section(
    "Event selection strategies",
    (
        Kind(
            "unknown-strategy",
            "No event selection strategy has that name.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE skip_till_nxt_match(a, b) { [id] }",
                "line 1, column 39: no event selection strategy 'skip_till_nxt_match'",
                "                                      ^^^^^^^^^^^^^^^^^^^ did you mean skip_till_next_match?",
            ),
        ),
        Kind(
            "duplicate-strategy",
            "A query has one event selection strategy of its own, and a step at most one.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE strict_contiguity(a, b) { skip_till_any_match(a, b) }",
                "line 1, column 65: a second event selection strategy",
                "                                                                ^^^^^^^^^^^^^^^^^^^^^^^^^ leave one out, or let it name some of the variables",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE strict_contiguity(b) AND skip_till_next_match(b)",
                "line 1, column 85: two strategies for 'b'",
                "                                                                                    ^ leave one out",
            ),
        ),
        Kind(
            "bad-strategy",
            "A strategy names something that is not a variable.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE skip_till_next_match(a.id) { [id] }",
                "line 1, column 60: a strategy takes variables",
                "                                                           ^^^^ name variables alone, such as (a, b[])",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment+ b[]) WHERE strict_contiguity(b[i-1])",
                "line 1, column 60: a strategy applies to single events",
                "                                                           ^^^^^^ write b[1] for the first event of the group, b[i] for the further ones, b[]",
            ),
            Example(
                "PATTERN SEQ(Login a, !(Stock n), Payment b) WHERE strict_contiguity(n)",
                "line 1, column 69: 'n' is the event that must not happen",
                "                                                                    ^ name positive components",
            ),
        ),
        Kind(
            "strategy-as-condition",
            "A strategy is inside OR or NOT.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE NOT skip_till_any_match(a, b)",
                "line 1, column 43: an event selection strategy is not a condition",
                "                                          ^^^^^^^^^^^^^^^^^^^^^^^^^ write WHERE skip_till_any_match { ... }, or join it to all other conditions with AND",
            ),
        ),
    ),
)

KLEENE_PLUS_AND_AGGREGATES = Section(
    "Kleene plus and aggregates",
    (
        Kind(
            "not-kleene",
            "An element or the length is read from a single event.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a[1].price > 3",
                "line 1, column 37: 'a' is a single event",
                "                                    ^^^^ write a, or declare Stock+ a[]",
            ),
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE a.LEN > 3",
                "line 1, column 37: 'a' is a single event, so it has no LEN",
                "                                    ^^^^^ declare Stock+ a[], or write a.`len` for an attribute of that name",
            ),
        ),
        Kind(
            "bad-index",
            "An index is not one of the supported elements.",
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE a[2].price > 3",
                "line 1, column 41: element 2 of a Kleene group cannot be named",
                "                                        ^^^ a[1], a[i], a[i-1], a[..i-1], a[a.LEN] and a[] can be named",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE a[i].price > a[i-2].price",
                "line 1, column 57: a[i-2] is too far back",
                "                                                        ^ only a[i-1] can be named",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE a[j].price > 3",
                "line 1, column 42: the index must be i, not j",
                "                                         ^ write a[i] or a[i-1]",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock+ b[]) WHERE a[b.LEN].price > 3",
                "line 1, column 43: 'a[b.LEN]' mixes two variables",
                "                                          ^^^^^^^^^^^^^^ write a[a.LEN]",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE a[a.last].price > 3",
                "line 1, column 44: 'last' is not an index",
                "                                           ^^^^ write a[a.LEN] for the last element",
            ),
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) RETURN a[i].price",
                "line 1, column 41: RETURN sees only the complete group",
                "                                        ^^^^ return a[1].x, a[a.LEN].x, a, or an aggregate",
            ),
        ),
        Kind(
            "group-outside-aggregate",
            "Many events are compared as if they were one.",
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE a[].price > b.price",
                "line 1, column 40: 'a[]' is many events; aggregate them",
                "                                       ^^^ for example avg(a[].x)",
            ),
        ),
        Kind(
            "aggregate-outside-kleene",
            "An aggregate is over a single event.",
            Example(
                "PATTERN SEQ(Stock a, Stock b) WHERE avg(a.price) > 3",
                "line 1, column 37: avg() needs the events of a Kleene component",
                "                                    ^^^^^^^^^^^^ declare Type+ a[] and write avg(a[].x)",
            ),
        ),
        Kind(
            "aggregate-over-several",
            "An aggregate is over more than one group of events.",
            Example(
                "PATTERN SEQ(Stock+ a[], Stock+ b[]) WHERE sum(a[].price - b[].price) > 3",
                "line 1, column 43: sum() aggregates one Kleene group",
                "                                          ^^^^^^^^^^^^^^^^^^^^^^^^^^ name a[] or a[..i-1] only, and combine aggregates outside",
            ),
        ),
        Kind(
            "aggregate-of-one",
            "An aggregate is over one element of a group.",
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE avg(a[1].price) > 3",
                "line 1, column 40: avg() aggregates several events, and 'a[1]' is a single one",
                "                                       ^^^^^^^^^^^^^^^ write a[] for the whole group, a[..i-1] for the events before this one",
            ),
        ),
        Kind(
            "nested-aggregate",
            "An aggregate is inside another aggregate.",
            Example(
                "PATTERN SEQ(Stock+ a[], Stock b) WHERE avg(a[].price - min(a[].price)) > 3",
                "line 1, column 56: an aggregate inside an aggregate",
                "                                                       ^^^^^^^^^^^^^^ aggregate an attribute: avg(a[].x)",
            ),
        ),
    ),
)
