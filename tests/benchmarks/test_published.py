"""What is published: numbers in README and docs are those of the result files, and lead to rows that there are."""

import re
from pathlib import Path

import pytest

from bench.experiments import all_experiments, chosen_experiments
from bench.harness import first
from bench.harness.cited import LINK, NotCited, fill, pages, read_title, reader
from bench.harness.experiment import Case, Contestant, Experiment, Verdict
from bench.harness.publish import stale_results
from bench.harness.report import REPORT, write_report
from bench.harness.store import PUBLISHED
from bench.harness.summary import Summary, summarise

TO_RESULTS = re.compile(r"\]\((?:\.\./)*bench/RESULTS\.md#([\w+-]+)")


def summary(**rates: float) -> Summary:
    """A run a contestant at one point."""
    base = {"series": "", "x": 5, "events": 100, "peak_mb": 1.0, "matches": 0, "metrics": {"p50_ms": 1500.0}}
    return summarise([{**base, "contestant": name, "seconds": 100 / rate} for name, rate in rates.items()])


def experiment(**more: object) -> Experiment:
    return Experiment(
        "made-up",
        "a paper",
        "Something",
        "a claim",
        "x",
        lambda size: [Case(5, lambda: [Contestant("Cepheid", lambda: None, 1)])],
        lambda found: Verdict("x1.0", False),
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_cited_numbers_are_those_of_the_result_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert fill(text, reader(PUBLISHED)) == text, "run `python -m bench publish`"


def test_every_row_that_is_linked_to_is_there() -> None:
    report = REPORT.read_text(encoding="utf-8")
    for page in pages():
        for anchor in TO_RESULTS.findall(page.read_text(encoding="utf-8")):
            assert f"<a id='{anchor}'></a>" in report, f"{page.name} leads to #{anchor}"


def test_every_experiment_has_a_row_or_a_word() -> None:
    report = REPORT.read_text(encoding="utf-8")
    for each in chosen_experiments([]):
        assert f"<a id='{each.name}'></a>" in report


def test_no_result_file_is_left_of_an_experiment_that_is_gone(tmp_path: Path) -> None:
    for name in (
        "sequence.json",
        "lazy_frequency.png",
        "sase-1.json",
        "calibration.json",
        "calibration_route.png",
        "cliffs.json",
        "search.jsonl",
    ):
        (tmp_path / name).touch()
    assert [path.name for path in stale_results(tmp_path)] == ["lazy_frequency.png", "sequence.json"]


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("rivals-any; Cepheid", "2.5 million"),
        ("rivals-any; Cepheid / CORE; at last", "10 times"),
        ("rivals-any; Cepheid / CORE; at 5; as percent", "1000%"),
        ("rivals-any; Cepheid; at 6", "not measured"),
        ("rivals-any; Siddhi", "not measured"),
        ("rivals-any; Cepheid; of p50_ms", "1.5 s"),
        ("rivals-any; Cepheid; of x", "5"),
    ],
)
def test_a_title_says_which_number_it_is(title: str, said: str) -> None:
    found = fill(f'[?](bench/RESULTS.md#rivals-any "{title}")', lambda name: summary(Cepheid=2.5e6, CORE=2.5e5))
    assert LINK.findall(found)[0][0] == said


def test_titles_that_say_nothing_are_refused() -> None:
    for title in ("rivals-any", "rivals-any; a / b / c", "rivals-any; a; on 5"):
        with pytest.raises(NotCited):
            read_title(title)
    with pytest.raises(NotCited):
        fill('[?](bench/RESULTS.md#sase-1 "rivals-any; Cepheid")', lambda name: None)


def test_whoever_is_ahead_is_listed_with_a_reason_or_the_lack_of_one() -> None:
    found = summary(**{"Cepheid": 10, "Cepheid live": 20, "Other": 40, "slow": 1, "nothing at all": 90})
    each = experiment(yardsticks=("nothing",))
    text = "\n".join(first.lagging_lines([(each, found)], {}))
    assert f"| Other | x2.00 at 5; in 1 of 1 cases | {first.NO_REASON} |" in text
    assert "slow" not in text
    assert "nothing at all |" not in text
    assert "| it is older |" in "\n".join(first.lagging_lines([(each, found)], {"made-up": {"Other": "it is\nolder"}}))
    assert first.lagging(experiment(less_is_better=True, ours=("slow",)), found) == []


def test_reasons_are_of_experiments_that_there_are() -> None:
    known = all_experiments()
    for name, texts in first.read_reasons().items():
        assert name in known
        assert all(text.strip() for text in texts.values())


def test_a_report_of_nothing_names_what_was_not_run(tmp_path: Path) -> None:
    text = write_report([experiment(needs=("rivals",))], tmp_path, tmp_path / "RESULTS.md")
    assert "- <a id='made-up'></a>made-up: a paper, Something (needs rivals)" in text
