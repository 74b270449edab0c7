"""Errors point at the right place, whatever the text looks like, and survive the way between processes."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import errors
from cepheid.errors import CepheidError, DataError, EngineError, LimitError, ModelError, QueryError, closest


def rendered(text: str, start: int, end: int | None = None, hint: str | None = None) -> list[str]:
    return str(QueryError("wrong", text=text, start=start, end=end, hint=hint)).split("\n")


def test_the_place_is_marked_and_the_hint_follows_the_carets() -> None:
    assert rendered("PATTERN SEQ(Login a, Paymnt b)", 21, 27, "did you mean 'Payment'?") == [
        "line 1, column 22: wrong",
        "PATTERN SEQ(Login a, Paymnt b)",
        "                     ^^^^^^ did you mean 'Payment'?",
    ]


def test_only_the_offending_line_is_shown() -> None:
    text = "PATTERN SEQ(A a)\nWHERE a.x > \nWITHIN 3"
    assert rendered(text, text.index("a.x"), text.index("a.x") + 3) == [
        "line 2, column 7: wrong",
        "WHERE a.x > ",
        "      ^^^",
    ]


def test_windows_line_ends_count_as_one() -> None:
    assert rendered("A a\r\nB b", 5, 6) == ["line 2, column 1: wrong", "B b", "^"]


def test_a_place_over_several_lines_is_marked_to_the_end_of_the_first() -> None:
    error = QueryError("wrong", text="one two\r\nthree", start=4, end=12)
    assert str(error).split("\n")[1:] == ["one two", "    ^^^"]
    assert (error.line, error.column, error.end_column) == (1, 5, 8)


@pytest.mark.parametrize(("text", "caret"), [("SEQ(A a", 7), ("", 0), ("SEQ(A a,\n", 0)])
def test_a_text_that_ends_too_early_is_marked_after_its_end(text: str, caret: int) -> None:
    assert rendered(text, len(text))[2] == " " * caret + "^"


def test_tabs_become_spaces_so_that_the_carets_line_up() -> None:
    assert rendered("\tx\tbad", 3, 6)[1:] == ["    x   bad", "        ^^^"]


def test_wide_and_combining_characters_are_measured_as_shown() -> None:
    assert rendered("'名前' = bad", 7, 10)[1:] == ["'名前' = bad", " " * 9 + "^^^"]
    assert rendered("cafe\u0301 bad", 6, 9)[2] == " " * 5 + "^^^"
    assert rendered("名前", 1, 2)[2] == "  ^^"


@pytest.mark.parametrize("start", [0, 150, 394])
def test_long_lines_are_clipped_around_the_place(start: int) -> None:
    text = "x" * start + "BADBAD" + "y" * (394 - start)
    _, shown, carets = rendered(text, start, start + 6)
    assert len(shown) <= errors.LINE_WIDTH + 2
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "BADBAD"
    assert shown.startswith("…") == (start > 0)
    assert shown.endswith("…") == (start < 394)


def test_carets_of_a_very_long_place_stay_inside_the_clipped_line() -> None:
    _, shown, carets = rendered("a" * 1000, 10, 990)
    assert len(carets) <= len(shown)


@given(st.text(), st.integers(-2, 60), st.integers(0, 60))
def test_any_text_and_any_place_give_three_lines_with_carets(text: str, start: int, length: int) -> None:
    error = QueryError("wrong", text=text, start=start, end=start + length)
    _, shown, carets = str(error).split("\n")
    assert carets.strip() == "^" * len(carets.strip())
    assert "^" in carets
    assert "\t" not in shown
    assert error.line is not None
    assert error.column is not None
    assert error.end_column is not None
    assert error.end_column > error.column >= 1


@given(
    st.text(alphabet="ab名\t\n", max_size=300).filter(lambda text: text.strip() != ""),
    st.data(),
)
def test_line_and_column_lead_back_to_the_marked_character(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1).filter(lambda at: text[at] != "\n"))
    error = QueryError("wrong", text=text, start=start, end=start + 1)
    assert error.line is not None
    assert error.column is not None
    assert text.split("\n")[error.line - 1][error.column - 1] == text[start]


def test_without_a_place_the_message_and_the_hint_stand_alone() -> None:
    assert str(QueryError("no PATTERN", text="WITHIN 3", hint="start with PATTERN")) == "no PATTERN; start with PATTERN"
    assert QueryError("no PATTERN").line is None


def test_data_errors_name_column_and_row() -> None:
    assert str(DataError("is null", column="ts", row=0)) == "column 'ts', row 0: is null"
    assert str(DataError("is absent", column="ts")) == "column 'ts': is absent"
    assert str(DataError("no rows")) == "no rows"


@pytest.mark.parametrize(
    "error",
    [
        QueryError("wrong", text="A\tb", start=2, end=3, hint="right", code="unknown-type"),
        DataError("is null", column="ts", row=3, hint="drop it"),
        ModelError("loss is 2", hint="use a number from 0 to 1"),
        LimitError("too many matches"),
        EngineError("'sequence' cannot run Kleene plus", hint="use 'runs'"),
    ],
)
def test_errors_survive_pickling(error: CepheidError) -> None:
    # Spark's workers hand their exceptions to the driver this way.
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_closest_prefers_the_nearest_spelling() -> None:
    assert closest("symbl", ["symbol", "volume", "sym"]) == "symbol"
    assert closest("VOLUME", ["symbol", "volume"]) == "volume"
    assert closest("price", ["symbol", "volume"]) is None
    assert closest("price", []) is None
