"""Errors in reading the text, and in the pattern itself."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

READING_THE_TEXT = Section(
    "Reading the text",
    (
        Kind(
            "empty",
            "There is no query.",
            Example(
                "  ",
                "the query is empty; it starts with PATTERN, for example PATTERN SEQ(A a, B b)",
                shown="(nothing but spaces)",
            ),
        ),
        Kind(
            "syntax",
            "A word or sign is not possible at its place.",
            Example(
                "SELECT * FROM ticks MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS price > 1)",
                "line 1, column 1: unexpected 'SELECT'",
                "^^^^^^ run a whole SQL statement, with MATCH_RECOGNIZE in it, with cepheid.sql.query(spark, statement); a query begins with PATTERN, a clause alone with MATCH_RECOGNIZE",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WERE a.id = b.id",
                "line 1, column 33: unexpected 'WERE'",
                "                                ^^^^ did you mean WHERE?",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b",
                "line 1, column 31: the query ends too early",
                "                              ^ expected ')', ',', AFTER, WITHIN",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE 1 < a.price < 3",
                "line 1, column 51: unexpected '<'",
                "                                                  ^ join two comparisons with AND, or write BETWEEN",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE [user.id > 2]",
                "line 1, column 48: unexpected '>'",
                "                                               ^ [...] tests for equal values; write the comparison with a variable: a.user.id > ...",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) WHERE a.unit price > 3",
                "line 1, column 46: unexpected 'price'",
                "                                             ^^^^^ write a name with a space in backquotes: `unit price`",
            ),
        ),
        Kind(
            "open-string",
            "A quote is opened and never closed.",
            Example(
                "PATTERN Login a WHERE a.name = 'John",
                "line 1, column 32: a string is never closed",
                "                               ^ close it with '",
            ),
        ),
        Kind(
            "open-name",
            "A backquote is opened and never closed.",
            Example(
                "PATTERN Login a WHERE a.`unit price > 3",
                "line 1, column 25: a quoted name is never closed",
                "                        ^ close it with `",
            ),
        ),
        Kind(
            "open-comment",
            "A comment is opened and never closed.",
            Example(
                "PATTERN Login a /* the first one",
                "line 1, column 17: a comment is never closed",
                "                ^^ close it with */",
            ),
        ),
        Kind(
            "too-long",
            "A text has more than 100,000 characters.",
            Example(
                "PATTERN Login a" + " " * 100_000,
                "the query text has 100015 characters; at most 100000 are read",
                shown="PATTERN Login a, and 100,000 spaces",
            ),
        ),
        Kind(
            "too-deep",
            "Expressions nest more than 100 deep (in a MATCH_RECOGNIZE clause at most 200, fewer where parentheses, CASE or calls nest; groups of Flink's patterns 50).",
            Example(
                "PATTERN Login a WHERE " + "NOT " * 100 + "a.flag",
                "line 1, column 423: expressions are nested more than 100 levels deep",
                "                                                                                               ^^^^^^ write fewer parentheses and NOTs, or compute a part as a column before",
                line="…T NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT a.flag",
                shown="PATTERN Login a WHERE NOT NOT NOT ...",
            ),
        ),
        Kind(
            "bad-number",
            "A number is too large for every column type, or has too many digits.",
            Example(
                "PATTERN Login a WHERE a.id > 123456789012345678901234567890123456789",
                "line 1, column 30: a number has more than 38 digits",
                "                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ write it as 1.5e40",
            ),
            Example(
                "PATTERN Login a WHERE a.id > 1e999",
                "line 1, column 30: a number is too large",
                "                             ^^^^^ the largest are near 1.8e308",
            ),
        ),
        Kind(
            "bad-text",
            "A text contains half of a surrogate pair, which no column supports.",
            Example(
                "PATTERN Login a WHERE a.name = nickname",
                "line 1, column 32: text with half of a surrogate pair",
                "                               ^^^^^^^^ no valid text is equal to it; leave the half out",
                options={"parameters": {"nickname": "\ud800"}},
            ),
        ),
        Kind(
            "duplicate-clause",
            "A clause is given twice.",
            Example(
                "PATTERN SEQ(Login a, Payment b) WITHIN 1 hour WITHIN 2 hours",
                "line 1, column 47: WITHIN is given twice",
                "                                              ^^^^^^^^^^^^^^ leave one out",
            ),
        ),
    ),
)

THE_PATTERN = Section(
    "The pattern",
    (
        Kind(
            "too-many-components",
            "A pattern has more than 63 components, negated ones included.",
            Example(
                f"PATTERN SEQ({', '.join(f'Login a{number}' for number in range(64))})",
                "line 1, column 696: a pattern of 64 components; there may be at most 63",
                " " * 91 + "^^^^^^^^^ split it: match parts of the pattern, then match their results",
                line=f"…, {', '.join(f'Login a{number}' for number in range(55, 64))})",
                shown="PATTERN SEQ(Login a0, Login a1, ..., Login a63)",
            ),
        ),
        Kind(
            "duplicate-variable",
            "Two components have the same name.",
            Example(
                "PATTERN SEQ(Login a, Payment a)",
                "line 1, column 22: variable 'a' is declared twice",
                "                     ^^^^^^^^^ give each component its own name",
            ),
        ),
        Kind(
            "reserved-name",
            "A variable or column has the name of a column of every result.",
            Example(
                "PATTERN SEQ(Login probability, Payment b)",
                "line 1, column 13: 'probability' is a column of every result",
                "            ^^^^^^^^^^^^^^^^^ choose another variable",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment b) RETURN a.ts AS match_start",
                "line 1, column 40: 'match_start' is a column of every result",
                "                                       ^^^^^^^^^^^^^^^^^^^ rename it with AS",
            ),
        ),
        Kind(
            "bad-variable",
            "A variable contains a hyphen, which means minus elsewhere.",
            Example(
                "PATTERN SEQ(Login log-in, Payment b)",
                "line 1, column 19: a variable cannot contain a hyphen: 'log-in'",
                "                  ^^^^^^ write it in backquotes, `log-in`, or without the hyphen",
            ),
        ),
        Kind(
            "missing-variable",
            "A component needs a variable to be distinguished from others.",
            Example(
                "PATTERN SEQ(Stock+, Payment b)",
                "line 1, column 13: a Kleene component needs a variable",
                "            ^^^^^ write Stock+ a[]",
            ),
            Example(
                "PATTERN SEQ(*, Payment b)",
                "line 1, column 13: a component of any type needs a variable",
                "            ^ write * x",
            ),
            Example(
                'seq(event("Stock").one_or_more(), event("Payment"))',
                'one or more events needs a variable; give <Event Stock+> one with as_("a")',
            ),
        ),
        Kind(
            "kleene-without-plus",
            "A variable with brackets belongs to Kleene plus.",
            Example(
                "PATTERN SEQ(Stock a[], Payment b)",
                "line 1, column 19: 'a[]' without '+'",
                "                  ^ write Stock+ a[] for one or more events",
            ),
        ),
        Kind(
            "negated-kleene",
            "A negated component is one event that must not happen.",
            Example(
                "PATTERN SEQ(Login a, !(Stock+ b[]), Payment c)",
                "line 1, column 22: a negated component is a single event",
                "                     ^^^^^^^^^^^^^ write !(Stock b)",
            ),
        ),
        Kind(
            "negation-in-any-order",
            "The parts of AND come in any order, so a negated part has no neighbours.",
            Example(
                "PATTERN SEQ(Login a, AND(Payment b, !(Stock c))) WITHIN 1 hour",
                "line 1, column 37: AND cannot have a negated part",
                "                                    ^^^^^^^^^^ put it between two parts of a sequence",
            ),
        ),
        Kind(
            "bad-quantifier",
            "A quantifier is a whole number above 0, or a range.",
            Example(
                "PATTERN SEQ(Login a, Payment{5,2} b[])",
                "line 1, column 29: not a number of repetitions",
                "                            ^^^^^ write {3}, {2,5} or {2,}",
            ),
        ),
        Kind(
            "gap-of-group",
            "AFTER and WITHIN inside the pattern limit the time since the event before.",
            Example(
                "PATTERN SEQ(Login a, (Payment b, Stock c) WITHIN 5 minutes)",
                "line 1, column 22: a gap limits the time before one event",
                "                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ write it after one component, for example B b WITHIN 5 minutes",
            ),
        ),
        Kind(
            "until-of-one",
            "UNTIL ends a group of events of one component.",
            Example(
                "PATTERN SEQ(Login a, Payment b UNTIL b.price > 3)",
                "line 1, column 22: UNTIL ends a group of events",
                "                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^ write it after one component that takes several events, for example B+ b[] UNTIL b.x = 0",
            ),
        ),
        Kind(
            "until-of-several",
            "UNTIL is a condition on the current event, which has the group's name, and on the events taken before it.",
            Example(
                "PATTERN SEQ(Login a, Payment+ b[] UNTIL b.price > c.price, Stock c)",
                "line 1, column 51: 'c' comes after the place where UNTIL is evaluated",
                "                                                  ^ name events that come before b in the pattern",
            ),
            Example(
                "PATTERN SEQ(Login a, Payment+ b[] UNTIL b.LEN = 3)",
                "line 1, column 41: 'b' is not complete where UNTIL is evaluated",
                "                                        ^^^^^ write count(b[..i-1]) for the number of events so far",
            ),
        ),
        Kind(
            "only-negation",
            "The pattern has no required component.",
            Example(
                "PATTERN SEQ(!(Login a)) WITHIN 1 hour",
                "line 1, column 13: a pattern needs at least one positive component",
                "            ^^^^^^^^^^ add a component without '!'",
            ),
            Example(
                "PATTERN SEQ(Login? a, Payment* b[])",
                "line 1, column 13: a pattern needs at least one positive component",
                "            ^^^^^^^^ make one of its parts mandatory",
            ),
        ),
        Kind(
            "negation-without-within",
            "Negation at the start or the end needs a window.",
            Example(
                "PATTERN SEQ(Login a, !(Payment b))",
                "line 1, column 22: negation at the end of a pattern needs a window",
                "                     ^^^^^^^^^^^^ add WITHIN, for example WITHIN 1 hour",
            ),
        ),
        Kind(
            "two-negations",
            "With THRESHOLD, a condition relates two negated components.",
            Example(
                "PATTERN SEQ(!(Login a), Stock b, !(Payment c)) WHERE a.id = c.id WITHIN 1 hour THRESHOLD 5%",
                "line 1, column 54: THRESHOLD evaluates a and c separately, and this condition relates them",
                "                                                     ^^^^^^^^^^^ split it into conditions on one negated component each",
            ),
        ),
    ),
)
