"""Messages in the words of the page: its fields, where Python and the command line have options."""

from __future__ import annotations

import re

_FIELDS = {"time": "Time", "type": "Type", "time_unit": "Unit", "tiebreak": "Ties"}
_ROWS = "row order"
_ELSEWHERE = "bad_records|aside|dedupe|decimal|thousands|lower|upper|existence|uncertainty|model|engine|lacks"


def in_words_of_the_page(message: str) -> str:
    """Proposals speak of arguments and options; the page has fields.

    >>> in_words_of_the_page("no column 'ts' for the time; did you mean time='when'?")
    "no column 'ts' for the time; did you mean 'when' under Time?"
    >>> in_words_of_the_page("pass time_unit='ms' (or what 'ts' counts), or write a plain number")
    "choose 'ms' under Unit (or what 'ts' counts), or write a plain number"
    >>> in_words_of_the_page("--input day.csv: there is no such file or directory")
    'day.csv: there is no such file or directory'
    >>> in_words_of_the_page("say how it is written, for example --time-format '%d/%m/%Y'")
    "say how it is written, for example '%d/%m/%Y' under 'Times written as'"
    """
    message = message.replace("cepheid.sql.query(spark, statement)", "`cepheid sql`")
    message = re.sub(
        r"\(pass type=None for an untyped stream\)", "(choose (none) under Type if there is none)", message
    )
    message = re.sub(r"\bpass type=None\b", "choose (none) under Type", message)
    message = re.sub(r"\btype=None\b", "(none) under Type", message)
    message = message.replace("tiebreak='row'", f"'{_ROWS}' under Ties")
    message = message.replace("tiebreak='...' with a column that orders them", "a column that orders them")

    def field(found: re.Match[str]) -> str:
        return f"{'choose ' if found[1] else ''}{found[3]} under {_FIELDS[found[2]]}"

    message = re.sub(r"\b(pass )?(time|type|time_unit|tiebreak)=('[^']*')", field, message)
    message = message.replace("pass 'row order'", "choose 'row order'")
    message = re.sub(r", or pass parameters=\{'(\w+)': \.\.\.\}", "", message)
    message = re.sub(rf"\bpass ((?:{_ELSEWHERE})=)", r"in Python pass \1", message)
    message = re.sub(r"--input (mixes)", r"the path \1", message)
    message = message.replace("--input ", "")
    message = re.sub(r"(pass )?--time-format ('[^']*'|\w+)", r"\2 under 'Times written as'", message)
    message = message.replace("pass it with --format, as in", "choose it under Format, as in")
    message = message.replace("pass it with --format", "choose it under Format")
    return re.sub(r"\b(?:pass|add) (--[a-z-]+)", r"use `cepheid run` with \1", message)
