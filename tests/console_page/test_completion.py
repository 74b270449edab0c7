"""What the console offers while a query is written."""

import pytest

from cepheid.console.completion import Names, complete, variables

KNOWN = Names({"ts": "int64", "tag": "string", "odd name": "double"}, ("Shelf", "Register", "Exit", "odd type"))


def offered(text: str) -> list[str]:
    """What is offered at the bar."""
    position = text.index("|")
    return [item.label for item in complete(text.replace("|", "", 1), position, KNOWN).items]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pa|", ["PATTERN"]),
        ("PATTERN SEQ(Sh|", ["Shelf"]),
        ("PATTERN SEQ(Shelf a, !(r|", ["Register"]),
        ("PATTERN SEQ(odd|", ["`odd type`"]),
        ("PATTERN S|", ["Shelf", "SEQ"]),
        ("PATTERN SEQ(Shelf a, Exit b) WHERE a.ta|", ["tag"]),
        ("PATTERN SEQ(Shelf a, Exit b) WHERE a.|", ["`odd name`", "tag", "ts"]),
        ("PATTERN SEQ(Shelf a, Exit b) WHERE [t|", ["tag", "ts"]),
        ("PATTERN SEQ(Shelf a, Exit b) WHERE [tag, t|", ["tag", "ts"]),
        ("PATTERN SEQ(Shelf a, Exit b) WITHIN 12 ho|", ["hours"]),
        ("PATTERN SEQ(Shelf a, Exit b) OUTPUT ma|", ["MAXIMAL"]),
        ("PATTERN SEQ(Shelf a, Exit b) WHERE a.tag = 'Sh|", []),
        ("PATTERN SEQ(Shelf a, Exit b) WHERE a.tag = 'x' AND skip_till_n|", ["skip_till_next_match"]),
    ],
)
def test_offers(text: str, wanted: list[str]) -> None:
    assert offered(text)[: len(wanted)] == wanted
    assert bool(offered(text)) == bool(wanted)


def test_variables_and_clauses_in_conditions() -> None:
    assert offered("PATTERN SEQ(Shelf first, Exit b) WHERE fi|")[0] == "first"
    assert "WITHIN" in offered("PATTERN SEQ(Shelf a, Exit b) WHERE a.tag = 1 wi|")
    assert "WHERE" not in offered("PATTERN SEQ(Shelf a, Exit b) WHERE a.tag = 1 |")


def test_variables_of_an_unfinished_pattern() -> None:
    assert variables("PATTERN SEQ(Shelf a, !(Register b), ANY(X, Y) c, Tick+ d[]") == ["a", "b", "c", "d"]
    assert variables("") == []
