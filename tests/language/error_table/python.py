"""Errors of patterns that are built in Python."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

PATTERNS_BUILT_IN_PYTHON = Section(
    "Patterns built in Python",
    (
        Kind(
            "python-boolean",
            "Python's and, or, not, if, in and chained comparisons need a truth value, and an expression has none.",
            Example(
                'var("a").price > 1 and var("b").price > 1',
                "'a.price > 1' is a part of a query and has no truth value in Python; write & for and, | for or, ~ for not, each comparison in parentheses; use between(low, high) for a chained comparison and is_in([...]) for in",
            ),
            Example(
                '1 < var("a").price < 3',
                "'a.price > 1' is a part of a query and has no truth value in Python; write & for and, | for or, ~ for not, each comparison in parentheses; use between(low, high) for a chained comparison and is_in([...]) for in",
            ),
        ),
        Kind(
            "python-precedence",
            "& and | bind tighter than comparisons.",
            Example(
                'var("a").price > 1 & var("b").price',
                '& joins conditions, and 1 is not a condition; & binds tighter than comparisons: write (a["x"] > 1) & (b["y"] < 2)',
            ),
        ),
        Kind(
            "compared-with-none",
            "A comparison with NULL is never true. Use IS NULL.",
            Example('var("a").price == None', "nothing is equal to NULL; use is_null() or is_not_null()"),
        ),
        Kind(
            "bad-value",
            "A Python value has no counterpart in queries.",
            Example(
                'var("a").price > [1]',
                "a list cannot be used in a query; numbers, strings, True, False, None, dates and expressions do",
            ),
            Example(
                'var("a").price > float("nan")', "nan cannot be used in a query; test for missing values with is_null()"
            ),
            Example('var("a").name.is_in("abc")', 'is_in() takes several values; a list, or param("...")'),
            Example('var("a").name.is_in([])', "nothing is in an empty list; leave the condition out"),
            Example(
                'var("a").price + var("b").price.alias("total")',
                "an alias names a returned column; put alias(...) last",
            ),
            Example('equivalent(id=var("a").id)', "'id' can be fixed to a constant or a parameter, not to 'a.id'"),
        ),
        Kind(
            "bad-name",
            "A name is empty or not a text.",
            Example('var("a")[0]', "the name of an attribute is a string, not 0"),
            Example("equivalent()", 'an equivalence test needs an attribute; for example equivalent("id")'),
            Example('call("my function", 1)', "a function cannot be called 'my function'"),
        ),
        Kind(
            "bad-default",
            "Only an attribute can have a default for a missing event.",
            Example(
                '(var("a").price + 1).default(0)',
                "'a.price + 1' takes no default; only an attribute of an event does, and only one",
            ),
        ),
        Kind(
            "unnamed-event",
            "An attribute of an event is named before the event has a variable.",
            Example(
                'event("Login")["id"]',
                'conditions refer to an event by its variable; <Event Login> has none: give it one with as_("a")',
            ),
        ),
        Kind(
            "bad-pattern",
            "A pattern is made of events.",
            Example('seq("Login", "Payment")', "a pattern is made of events, not of 'Login'; write event('Login')"),
            Example("seq()", 'a pattern needs at least one event; for example seq(event("A"), event("B"))'),
            Example("any_of()", "any_of() needs event types; event() takes events of every type"),
        ),
        Kind(
            "bad-condition",
            "where() takes conditions.",
            Example(
                'seq(event("Login")).where("a.id > 1")',
                "'a.id > 1' is not a condition; a condition is made of attributes, such as a[\"x\"] > 1",
            ),
        ),
        Kind(
            "bad-return",
            "returning() needs something to return.",
            Example('seq(event("Login")).returning()', "nothing to return; leave returning() out to get every event"),
        ),
    ),
)
