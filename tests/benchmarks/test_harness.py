"""The harness: what it keeps, what it compares, and where it writes. Never how long anything takes."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from bench.experiments import all_experiments, chosen_experiments
from bench.harness import report, run, store
from bench.harness.calls import cepheid_call, match_digest
from bench.harness.compare import ratios
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Unavailable, Verdict, available
from bench.harness.run import ResultsDiffer, run_experiment
from bench.harness.spark import join_statement
from bench.harness.summary import disagreement, summarise


def contestant(name: str, matches: int = 1, digest: str | None = None, **more: object) -> Contestant:
    return Contestant(name, lambda: None, 10, lambda result: Outcome(matches, digest), **more)  # type: ignore[arg-type]


def experiment(*contestants: Contestant, xs: tuple[float, ...] = (1, 2)) -> Experiment:
    return Experiment(
        "made-up",
        "a paper, figure 1",
        "Something by something",
        "a claim",
        "x",
        lambda size: [Case(x, lambda: contestants) for x in xs],
        lambda summary: Verdict(f"{summary.value('one', 1, of='matches'):.0f} matches", True),
    )


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "PUBLISHED", tmp_path / "published")
    monkeypatch.setattr(store, "BUILD", tmp_path / "build")
    return tmp_path


@pytest.mark.slow
def test_only_a_full_run_is_published(folders: Path) -> None:
    for size in ("smoke", "quick"):
        run_experiment(experiment(contestant("one")), size, 1.0)
    assert not (folders / "published").exists()
    run_experiment(experiment(contestant("one")), "full", 1.0)
    assert {path.suffix for path in (folders / "published").iterdir()} == {".json", ".parquet", ".png"}


@pytest.mark.slow
def test_contestants_that_find_different_matches_are_an_error() -> None:
    with pytest.raises(ResultsDiffer, match="one found 1"):
        run_experiment(experiment(contestant("one"), contestant("other", 2)), "quick", 1.0)
    run_experiment(experiment(contestant("one"), contestant("other", 2, agrees=False)), "quick", 1.0)


def test_digests_decide_where_both_have_one() -> None:
    runs = [
        {"contestant": name, "events": 5, "matches": 3, "digest": digest}
        for name, digest in (("a", "x"), ("b", None), ("c", "y"))
    ]
    assert disagreement(runs, ["a", "b"]) == ""
    assert "c found 3 (y)" in disagreement(runs, ["a", "b", "c"])


@pytest.mark.slow
def test_what_cannot_be_had_is_left_out_with_a_word() -> None:
    def missing() -> None:
        raise Unavailable("there is no such engine")

    found = run_experiment(experiment(contestant("one"), Contestant("gone", missing, 10)), "quick", 1.0)
    assert found.contestants() == ["one"]
    kept = json.loads((store.BUILD / "quick" / "made-up.json").read_text())
    assert "there is no such engine" in kept["left_out"][0]


@pytest.mark.slow
def test_a_run_that_was_cut_short_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[float] = []

    def cut(*arguments: object) -> list[dict[str, object]]:
        cases.append(arguments[1].x)  # type: ignore[attr-defined]
        if len(cases) == 2:
            raise KeyboardInterrupt
        return original(*arguments)  # type: ignore[arg-type,return-value]

    original = run.run_case
    monkeypatch.setattr(run, "run_case", cut)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(contestant("one")), "quick", 1.0)
    run_experiment(experiment(contestant("one")), "quick", 1.0)
    assert cases == [1, 2, 2]


def test_medians_and_spread() -> None:
    base = {"series": "", "x": 1, "contestant": "one", "events": 6, "peak_mb": 1.0, "matches": 0, "metrics": {"m": 2}}
    row = summarise([{**base, "seconds": seconds} for seconds in (1.0, 2.0, 3.0, 9.0)]).rows[0]
    assert (row.seconds, row.events_per_second, row.value("m")) == (2.5, 2.4, 2.0)
    assert 0 < row.spread < 1


@pytest.mark.slow
def test_the_report_says_claim_number_and_verdict(folders: Path) -> None:
    run_experiment(experiment(contestant("one")), "full", 1.0)
    text = report.write_report([experiment(contestant("one"))], store.PUBLISHED, folders / "RESULTS.md")
    assert "| [made-up](#made-up): a paper, figure 1 | batch over a table in memory, 1 core | a claim | 1 " in text


def test_the_digest_is_of_the_set_of_matches() -> None:
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "A", "B", "B"]})
    found = cepheid.match(events, "PATTERN SEQ(A+ a[], B b) WITHIN 9", engine="reference")
    again = found.take(pa.array(range(found.num_rows - 1, -1, -1)))
    assert match_digest(found) == match_digest(again) != match_digest(found.slice(1))


def test_a_join_says_the_same_as_the_query() -> None:
    text = join_statement("s", ["A", "B"], ["k"], 10)
    assert "e2.k = e1.k AND e2.ts > e1.ts AND e2.ts < e1.ts + 10" in text


def test_ratios_are_of_the_same_round() -> None:
    runs = [
        {"experiment": "e", "series": "", "x": "1", "contestant": "c", "side": side, "round": turn, **more}
        for turn in (1, 2, 3)
        for side, more in (
            ("before", {"seconds": float(turn), "peak_mb": 1.0, "matches": 1, "digest": "d"}),
            ("after", {"seconds": turn / 2, "peak_mb": 1.0, "matches": 1, "digest": "d"}),
        )
    ]
    line = ratios(runs)[0]
    assert line["ratio"] == 0.5
    assert line["same_matches"]


def test_experiments_have_names_and_cases_of_their_own() -> None:
    assert {each.name for each in chosen_experiments(["sase"])} >= {"sase-1", "sase+-1"}
    for each in all_experiments().values():
        keys = [case.key for case in each.cases("smoke")]
        assert keys
        assert len(set(keys)) == len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sase-basic", "sase+-6", "ayac-form"])
def test_a_smoke_run_of_each_kind(name: str, folders: Path) -> None:
    """One of each kind; `make bench-smoke` runs all of them."""
    found = run_experiment(all_experiments()[name], "smoke", 1.0)
    assert found.rows
    assert report.judged(all_experiments()[name], found).number
    assert not (folders / "published").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, e in all_experiments().items() if not e.needs and n != "house-start"])
def test_every_experiment_runs(name: str) -> None:
    run_experiment(all_experiments()[name], "smoke", 1.0)


def test_a_call_of_match_is_a_contestant() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"]})
    call = cepheid_call("ours", events, "PATTERN SEQ(A a, B b) WITHIN 5", engine="reference")
    assert call.inspect(call.run()).matches == 1


def test_who_is_not_there_is_told_in_the_results() -> None:
    def gone() -> Contestant:
        raise Unavailable("CORE is not set up: run `make bench-rivals`")

    case = Case(1, lambda: available([lambda: contestant("one"), gone]))
    budget = run.Budget(1.0, 1, 1, warm_up=False)
    runs = run.run_case(experiment(), case, budget, run.Course())
    assert [each["error"] for each in runs if each.get("error")] == [
        "CORE at 1: CORE is not set up: run `make bench-rivals`"
    ]
