"""Every error that the language can raise, as it is printed; docs/errors.md is made from the same table."""

import ast
import re
from pathlib import Path

import pytest

import cepheid.engine.search.row_pattern
import cepheid.language
import cepheid.runners
from cepheid.language.check import problems, resolve
from cepheid.language.sase.parse import parse
from language.error_page import COMMAND, PAGE, SECTIONS, page
from language.error_table.kinds import Example

KINDS = [kind for section in SECTIONS for kind in section.kinds]
EXAMPLES = [(kind.code, example) for kind in KINDS for example in kind.examples]


@pytest.mark.parametrize(
    ("code", "example"), EXAMPLES, ids=[f"{code}-{number}" for number, (code, _) in enumerate(EXAMPLES)]
)
def test_the_error_is_what_the_table_says(code: str, example: Example) -> None:
    error = example.run()
    assert error is not None
    assert str(error) == example.rendered
    assert error.code == code


def _codes_in(path: Path) -> set[str]:
    """Every code-shaped constant of a source file: words joined by hyphens, and whatever is passed as `code`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z]+(-[a-z]+)+", str(node.value)):
            found.add(str(node.value))
        if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
            found.add(str(node.value.value))
        if isinstance(
            node, ast.Call
        ):  # row patterns: reader.fail(message, place, code), _fail(clause, message, place, code)
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            at = {"fail": 2, "_fail": 3, "_error": 3}.get(name)
            if at is not None and len(node.args) > at and isinstance(node.args[at], ast.Constant):
                found.add(str(node.args[at].value))
    return found


def test_every_code_in_the_source_is_in_the_table() -> None:
    folder = Path(cepheid.language.__path__[0])
    engine = Path(cepheid.engine.search.row_pattern.__path__[0])
    runners = Path(cepheid.runners.__path__[0])
    others = [*engine.glob("*.py"), *runners.glob("sql/stat*.py"), *runners.glob("spark/row*.py")]  # of row patterns
    # Flink's builder is a language of its own; tests/flink have its errors.
    files = [path for path in folder.rglob("*.py") if "flink" not in path.relative_to(folder).parts]
    raised = set().union(*(_codes_in(path) for path in [*files, *others]))
    assert len(raised) > 50
    assert raised == {kind.code for kind in KINDS}


def test_each_code_is_listed_once() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(codes) == len(set(codes))


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"write it again with: {COMMAND}"


def test_all_problems_of_a_query_can_be_listed() -> None:
    text = "PATTERN SEQ(A a, !(B a)) WHERE c.x > 1 AND avg(a.x) > 2 RETURN d.x AS match_start"
    assert [problem.code for problem in problems(resolve(parse(text)), text)] == [
        "duplicate-variable",
        "negation-without-within",
        "unknown-variable",
        "aggregate-outside-kleene",
        "unknown-variable",
        "reserved-name",
    ]


def test_errors_without_a_text_keep_their_hint() -> None:
    query = resolve(parse("PATTERN SEQ(A a, B b) WHERE c.x > 1"))
    assert [str(problem) for problem in problems(query)] == ["no variable 'c'; the variables are a, b"]
