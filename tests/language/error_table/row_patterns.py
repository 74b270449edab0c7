"""Errors in MATCH_RECOGNIZE clauses."""

# ruff: noqa: E501 (errors as they are printed)

from language.error_table.kinds import Example, Kind, Section

ROW_PATTERNS = Section(
    "Row patterns (MATCH_RECOGNIZE)",
    (
        Kind(
            "unknown-label",
            "No label of the pattern and no subset has this name.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A B+) DEFINE C AS true)",
                "line 1, column 40: no label 'C'",
                "                                       ^ the labels are A, B",
            ),
            Example(
                "MATCH_RECOGNIZE (MEASURES UP.price AS p PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 27: no label 'UP'",
                "                          ^^ the labels are A, B",
            ),
        ),
        Kind(
            "unknown-column",
            "The table has no such column.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS pric > 1)",
                "line 1, column 42: no column 'pric'",
                "                                         ^^^^ did you mean 'price'?",
            ),
        ),
        Kind(
            "ambiguous-column",
            "Several columns differ in the case of their letters alone.",
        ),
        Kind(
            "duplicate-label",
            "A subset has the name of a label or of another subset.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A B) SUBSET A = (B) DEFINE A AS true)",
                "line 1, column 39: 'A' is a label of the pattern",
                "                                      ^ give the subset another name",
            ),
        ),
        Kind(
            "label-defined-twice",
            "A label is defined twice.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS price > 1, A AS price < 9)",
                "line 1, column 53: a second definition of 'A'",
                "                                                    ^ join them with AND",
            ),
        ),
        Kind(
            "duplicate-measure",
            "Two measures have the same name.",
            Example(
                "MATCH_RECOGNIZE (MEASURES price AS p, id AS p PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 45: a second measure 'p'",
                "                                            ^ rename one",
            ),
        ),
        Kind(
            "measure-name",
            "A measure has no name.",
            Example(
                "MATCH_RECOGNIZE (MEASURES price PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 27: a measure without a name",
                "                          ^^^^^ every measure needs a name: expression AS name",
            ),
        ),
        Kind(
            "no-label",
            "The pattern takes no row.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (()) DEFINE A AS true)",
                "line 1, column 27: the pattern has no label",
                "                          ^^ write at least one: PATTERN (A)",
            ),
        ),
        Kind(
            "clause-order",
            "A part of the clause is out of order, or given twice.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) MEASURES price AS p DEFINE A AS true)",
                "line 1, column 30: MEASURES is out of order",
                "                             ^^^^^^^^ the order: PARTITION BY, ORDER BY, MEASURES, ROWS PER MATCH, AFTER MATCH, PATTERN, WITHIN, SUBSET, DEFINE",
            ),
        ),
        Kind(
            "search-mode",
            "INITIAL or SEEK, which belong to windows.",
            Example(
                "MATCH_RECOGNIZE (SEEK PATTERN (A) DEFINE A AS true)",
                "line 1, column 18: SEEK is not possible here",
                "                 ^^^^ it belongs to row patterns in windows",
            ),
        ),
        Kind(
            "clause-option",
            "An option of a clause that the rest of the clause does not allow.",
            Example(
                "MATCH_RECOGNIZE (ORDER BY id PATTERN (A B) OPTIONS (output_partial = true))",
                "line 1, column 53: output_partial without WITHIN",
                "                                                    ^^^^^^^^^^^^^^ add a window: PATTERN (...) WITHIN INTERVAL '1' HOUR",
            ),
        ),
        Kind(
            "not-a-column",
            "A key of PARTITION BY or ORDER BY is neither a column nor computed from one row.",
            Example(
                "MATCH_RECOGNIZE (ORDER BY sum(id) PATTERN (A) DEFINE A AS true)",
                "line 1, column 27: expected a column name",
                "                          ^^^^^^^ name a column, or compute a value from the columns of one row",
            ),
        ),
        Kind(
            "quantifier-range",
            "The numbers of a quantifier are invalid.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A{5,2}) DEFINE A AS true)",
                "line 1, column 28: the lower bound is above the upper one",
                "                           ^^^^^ write {2,5}",
            ),
        ),
        Kind(
            "second-quantifier",
            "One quantifier after another.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A+*) DEFINE A AS true)",
                "line 1, column 29: a second quantifier",
                "                            ^ put the first in parentheses",
            ),
        ),
        Kind(
            "too-many-orders",
            "PERMUTE of more parts than can be tried in all orders.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (PERMUTE(A, B, C, D, E, F, G, H, I)) DEFINE A AS true)",
                "line 1, column 27: PERMUTE takes at most 8 parts",
                "                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            ),
        ),
        Kind(
            "exclusion",
            "An exclusion is used with a result that shows all rows.",
            Example(
                "MATCH_RECOGNIZE (ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -}) DEFINE A AS true)",
                "line 1, column 68: an exclusion in a clause that shows all rows",
                "                                                                   ^^^^^^^ leave out {- -}, or WITH UNMATCHED ROWS",
            ),
        ),
        Kind(
            "two-labels",
            "A navigation or an aggregate reads columns of two labels.",
            Example(
                "MATCH_RECOGNIZE (MEASURES sum(A.price + B.price) AS s PATTERN (A B) DEFINE A AS true)",
                "line 1, column 27: SUM over A and B",
                "                          ^^^^^^^^^^^^^^^^^^^^^^ use one label, or a SUBSET of both",
            ),
        ),
        Kind(
            "navigation-nesting",
            "A navigation is nested in another one that does not support it.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS LAST(PREV(price)) > 1)",
                "line 1, column 47: PREV inside LAST",
                "                                              ^^^^^^^^^^^ PREV and NEXT may hold FIRST or LAST directly, nothing else",
            ),
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS PREV(sum(price)) > 1)",
                "line 1, column 47: SUM inside PREV",
                "                                              ^^^^^^^^^^ aggregate outside it",
            ),
        ),
        Kind(
            "navigation-argument",
            "A navigation reads no column.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS LAST(1) > 1)",
                "line 1, column 42: LAST needs a column or CLASSIFIER",
                "                                         ^^^^^^^ for example LAST(price)",
            ),
        ),
        Kind(
            "navigation-offset",
            "The offset of a navigation is not a whole number of at least 0.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS PREV(price, -1) > 1)",
                "line 1, column 54: the offset is negative",
                "                                                     ^^ use NEXT",
            ),
        ),
        Kind(
            "aggregate-nesting",
            "An aggregate contains an aggregate or a navigation.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS sum(LAST(price)) > 1)",
                "line 1, column 46: LAST inside SUM",
                "                                             ^^^^^^^^^^^ an aggregate is over columns of the match's rows",
            ),
        ),
        Kind(
            "aggregate-filter",
            "FILTER after a function that is no aggregate, or about other rows than the aggregate.",
            Example(
                "MATCH_RECOGNIZE (MEASURES abs(id) FILTER (WHERE id > 1) AS s PATTERN (A B+))",
                "line 1, column 35: FILTER is not possible with abs",
                "                                  ^^^^^^ put the condition inside: CASE WHEN condition THEN x END",
            ),
            Example(
                "MATCH_RECOGNIZE (MEASURES count(A.*) FILTER (WHERE id > 1) AS s PATTERN (A B+))",
                "line 1, column 38: FILTER is about other rows than the aggregate",
                "                                     ^^^^^^ write the label before the columns of the condition, too: count(A.*) FILTER (WHERE A.x > 1)",
            ),
        ),
        Kind(
            "aggregate-order",
            "ORDER BY inside a function that is no aggregate, or that DISTINCT and WITHIN GROUP do not allow.",
            Example(
                "MATCH_RECOGNIZE (MEASURES FIRST(price ORDER BY id) AS s PATTERN (A B+))",
                "line 1, column 39: ORDER BY inside FIRST",
                "                                      ^^^^^ rows come in their order; first_value, max_by and array_agg take ORDER BY",
            ),
        ),
        Kind(
            "json-path",
            "The operators -> and ->> are followed by something other than a name, a path or a place, or -> ends a path.",
            Example(
                "MATCH_RECOGNIZE (MEASURES LAST(doc) -> 'a' AS s PATTERN (A B+))",
                "line 1, column 37: -> gives JSON, which is no value here",
                "                                    ^^ use ->>, which gives a text",
            ),
        ),
        Kind(
            "window-function",
            "OVER after a function, or a row pattern in a window.",
            Example(
                "MATCH_RECOGNIZE (MEASURES sum(price) OVER (w) AS s PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 38: OVER is not possible in a row pattern",
                "                                     ^^^^ leave it out: an aggregate is of the rows of the match",
            ),
        ),
        Kind(
            "final-in-define",
            "FINAL in DEFINE, where the end of the match is not known.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS FINAL LAST(price) > 1)",
                "line 1, column 42: FINAL in DEFINE",
                "                                         ^^^^^^^^^^ a condition sees the match up to its row",
            ),
        ),
        Kind(
            "processing-mode",
            "RUNNING or FINAL is used where it does not apply.",
            Example(
                "MATCH_RECOGNIZE (MEASURES FINAL PREV(price) AS p PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 33: FINAL before PREV",
                "                                ^^^^ RUNNING and FINAL are only allowed before FIRST, LAST and aggregates",
            ),
        ),
        Kind(
            "star",
            "'*' where nothing is counted.",
            Example(
                "MATCH_RECOGNIZE (MEASURES sum(*) AS s PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 31: '*' in SUM",
                "                              ^ only COUNT takes '*'",
            ),
        ),
        Kind(
            "distinct",
            "DISTINCT is used where it does not apply, or where the system does not support it.",
            Example(
                "MATCH_RECOGNIZE (MEASURES LAST(DISTINCT price) AS p PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 27: DISTINCT in LAST",
                "                          ^^^^ leave DISTINCT out",
            ),
            Example(
                "MATCH_RECOGNIZE (MEASURES count(DISTINCT price) AS n PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 27: DISTINCT in COUNT",
                "                          ^^^^^ trino has no DISTINCT in row patterns",
                options={"dialect": "trino"},
            ),
        ),
        Kind(
            "arguments",
            "A function has too many or too few arguments, or an invalid one.",
            Example(
                "MATCH_RECOGNIZE (MEASURES CLASSIFIER(A, B) AS c PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 27: CLASSIFIER takes at most one label",
                "                          ^^^^^^^^^^^^^^^^ write CLASSIFIER() or CLASSIFIER(A)",
            ),
        ),
        Kind(
            "within",
            "WITHIN has no time column, or its length does not fit.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) WITHIN 5 DEFINE A AS true)",
                "line 1, column 37: WITHIN without ORDER BY",
                "                                    ^ add the time: ORDER BY ts",
            ),
            Example(
                "MATCH_RECOGNIZE (ORDER BY id PATTERN (A) WITHIN INTERVAL '5' MINUTE DEFINE A AS true)",
                "line 1, column 49: 'id' is not a time",
                "                                                ^^^^^^^^^^^^^^^^^^^ write WITHIN and a number",
            ),
        ),
        Kind(
            "interval",
            "An interval cannot be read, or has no fixed length where one is needed.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS ts - PREV(ts) < INTERVAL '1' MONTH)",
                "line 1, column 58: months and years have no fixed length",
                "                                                         ^^^^^^^^^^^^^^^^^^ add it to a time, or write it in days",
            ),
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS ts - PREV(ts) < INTERVAL '5')",
                "line 1, column 67: an interval needs a unit",
                "                                                                  ^^^ write INTERVAL '5' MINUTE",
            ),
        ),
        Kind(
            "literal",
            "A date or a time cannot be read.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS ts > DATE '2026-13-01')",
                "line 1, column 52: '2026-13-01' is not a date",
                "                                                   ^^^^^^^^^^^^ write it as 2026-01-31",
            ),
        ),
        Kind(
            "subquery",
            "The clause contains a query, which only `cepheid.sql.query` can run. Or the query returns more than one column or row, or more than 100,000 values after IN.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS price > (SELECT 1))",
                "line 1, column 51: a query inside MATCH_RECOGNIZE",
                "                                                  ^^^^^^ cepheid.sql.query runs (SELECT ...) in a statement; elsewhere compute it before and join it to the table",
            ),
        ),
        Kind(
            "lambda",
            "A lambda is outside a Spark function.",
            Example(
                "MATCH_RECOGNIZE (MEASURES abs(x -> x) AS s PATTERN (A B+) DEFINE B AS price < PREV(price))",
                "line 1, column 31: only functions of Spark take a lambda",
                "                              ^^^^^^",
            ),
        ),
        Kind(
            "no-columns",
            "The result would have no column: no PARTITION BY, no MEASURES.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)",
                "the result has no column; name a measure: MEASURES count(*) AS rows",
            ),
        ),
        Kind(
            "end-of-stream",
            "`$` over a stream, which has no last row.",
        ),
        Kind(
            "no-translation",
            "`query.to_match_recognize` cannot express a query as a clause with the same matches.",
        ),
        Kind(
            "no-table",
            "MATCH_RECOGNIZE follows no table in a statement.",
        ),
        Kind(
            "nested-clause",
            "A clause is inside another one, or in a recursive query.",
        ),
        Kind(
            "spark-expression",
            "Spark cannot compute a part of the clause, or a part of DEFINE reads several rows.",
        ),
        Kind(
            "unsafe-function",
            "A clause calls a Spark function that is not pure, such as `java_method`, `rand` or a function of the session. `unsafe_functions=True` allows them. Use it only if you trust the text of the clause.",
        ),
        Kind(
            "too-large",
            "The pattern has too many steps, or a string column too many characters.",
        ),
        Kind(
            "types",
            "Operands have types that do not fit, or a condition is not a Boolean.",
            Example(
                "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS price + 1)",
                "line 1, column 42: a condition is true or false",
                "                                         ^^^^^^^^^",
            ),
        ),
    ),
)
