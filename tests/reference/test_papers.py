"""Each worked example of the papers that states a result. Figures are images: where one is needed, the stream is
rebuilt so that every statement about it in the text holds, and each of these statements is checked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.model import Exponential, Model
from reference.written_streams import by_match, matches, stream

BOUNDS = {"lower": "lower", "upper": "upper"}
QUERIES = Path(__file__).parent.parent / "queries"


def paper_query(name: str) -> str:
    return (QUERIES / f"{name}.cepheid").read_text(encoding="utf-8")


class TestSase:
    """SASE, figures 1 to 6, query Q3.

    The text says: sub-sequence type (A, B, D); seven sequences leave SSC, three of them for d9; b6's most recent A
    is a4, with edges to a1 and a4; b6 has '2' in attr1, and so has a4; three of seven pass the selection, the window
    T = 6 drops the second of these, negation the second of what is left; with the test on attr1 in the scan one
    sequence is built for d9, and the optimised plan builds two in all.
    """

    EVENTS = stream(
        "a1:attr1=1,attr2=1,attr3=1,attr4=1 c2:attr1=1,attr2=1 b3:attr1=1,attr2=1 a4:attr1=2,attr2=1,attr3=1,attr4=1 "
        "d5:attr1=1,attr2=1,attr4=9 b6:attr1=2,attr2=1 c7:attr1=2,attr2=1 d8:attr1=1,attr2=1,attr4=9 "
        "d9:attr1=2,attr2=1,attr4=9"
    )

    def test_sequence_scan_and_construction_build_seven_sequences_three_of_them_for_d9(self) -> None:
        built = matches(self.EVENTS, "EVENT SEQ(A x1, B x2, D x4)")
        assert len(built) == 7
        assert {match for match in built if match.endswith("d9")} == {"a1 b3 d9", "a1 b6 d9", "a4 b6 d9"}

    def test_b6_can_follow_a1_and_a4_only(self) -> None:
        assert {m for m in matches(self.EVENTS, "EVENT SEQ(A x, B y)") if m.endswith("b6")} == {"a1 b6", "a4 b6"}

    def test_three_of_seven_pass_the_selection(self) -> None:
        query = "EVENT SEQ(A x1, B x2, D x4) WHERE [attr1, attr2] AND x1.attr3 = 1 AND x1.attr4 < x4.attr4"
        assert matches(self.EVENTS, query) == {"a1 b3 d5", "a1 b3 d8", "a4 b6 d9"}

    def test_the_window_drops_the_second_of_them(self) -> None:
        query = "EVENT SEQ(A x1, B x2, D x4) WHERE [attr1, attr2] AND x1.attr3 = 1 AND x1.attr4 < x4.attr4 WITHIN 6"
        assert matches(self.EVENTS, query) == {"a1 b3 d5", "a4 b6 d9"}

    def test_negation_drops_the_second_of_what_is_left(self) -> None:
        renamed = self.EVENTS.rename_columns(["name", "ts", "type", "attr₁", "attr₂", "attr₃", "attr₄"])
        as_text = renamed.set_column(5, "attr₃", renamed.column("attr₃").cast(pa.string()))
        assert matches(as_text, paper_query("sase-q3-query-plan"), parameters={"T": 6}) == {"a1 b3 d5"}

    def test_one_sequence_for_d9_when_the_scan_is_partitioned(self) -> None:
        built = matches(self.EVENTS, "EVENT SEQ(A x1, B x2, D x4) WHERE [attr1]")
        assert {match for match in built if match.endswith("d9")} == {"a4 b6 d9"}

    def test_two_equivalence_tests(self) -> None:
        """Figure 5: b5 has an A of the same attr1 and one of the same attr2, but none of both; b6 has a3."""
        events = stream("a1:p=1,q=1 a2:p=2,q=3 a3:p=1,q=3 b5:p=2,q=1 b6:p=1,q=3")
        assert matches(events, "EVENT SEQ(A x, B y) WHERE [p, q]") == {"a3 b6"}
        assert matches(events, "EVENT SEQ(A x, B y) WHERE [p]") == {"a2 b5", "a1 b6", "a3 b6"}
        assert {m for m in matches(events, "EVENT SEQ(A x, B y) WHERE [q]") if m.endswith("b6")} == {"a2 b6", "a3 b6"}


class TestSasePlus:
    """SASE+, figures 3 and 4, query 3.

    The text says: e1 and e3 can begin; R1 and R2 are found with e6, several more, R3 among them, with e8; e6 both
    continues the run of R1, which becomes R3, and closes it; e1 e2 e3 e4 e6 is wrong, as is whatever mixes runs;
    after e4 both runs have the same maximal price.
    """

    PRICES = (100, 120, 120, 121, 120, 125, 124, 120)
    VOLUMES = (1010, 990, 1005, 999, 999, 750, 950, 700)
    EVENTS = pa.table(
        {
            "name": [f"e{n}" for n in range(1, 9)],
            "ts": [n * 60 for n in range(1, 9)],
            "type": ["Stock"] * 8,
            "symbol": ["GOOG"] * 8,
            "price": PRICES,
            "volume": VOLUMES,
        }
    )

    def found(self) -> set[str]:
        return matches(self.EVENTS, paper_query("sase-plus-q3-stock-trend"), time_unit="s")

    def test_the_matches(self) -> None:
        with_e6 = {"e1+e2+e3+e4+e5 e6", "e3+e4 e6"}
        with_e8 = {"e1+e2+e3+e4+e5+e6+e7 e8", "e3+e4+e6+e7 e8"}
        assert self.found() == with_e6 | with_e8

    def test_only_e1_and_e3_begin(self) -> None:
        assert {match[:2] for match in self.found()} == {"e1", "e3"}

    def test_runs_do_not_mix(self) -> None:
        assert "e1+e2+e3+e4 e6" not in self.found()

    def test_both_runs_have_the_same_maximal_price_after_e4(self) -> None:
        assert max(self.PRICES[0:4]) == max(self.PRICES[2:4])

    def test_contaminated_shipments(self) -> None:
        """Section 2: from site X one shipment goes to Y and a later one to Z: both series are found."""
        columns = ["name", "ts", "type", "kind", "site", "from", "to"]
        rows = [
            ("alert", 0, "Alert", "contaminated", "W", None, None),
            ("s1", 60, "Shipment", None, None, "W", "X"),
            ("s2", 120, "Shipment", None, None, "X", "Y"),
            ("s3", 180, "Shipment", None, None, "X", "Z"),
            ("s4", 240, "Shipment", None, None, "Q", "Z"),
        ]
        events = pa.table({name: [row[i] for row in rows] for i, name in enumerate(columns)})
        query = """PATTERN SEQ(Alert a, Shipment+ b[])
            WHERE skip_till_any_match(a, b[]) {
                a.kind = 'contaminated' and b[1].from = a.site and b[i].from = b[i-1].to }
            WITHIN 3 hours"""
        assert matches(events, query, time_unit="s") == {"alert s1", "alert s1+s2", "alert s1+s3"}


def test_lazy_example_1() -> None:
    """LAZY, section 1: a3 a5 a8 b7 b13 c9 hold two rising sequences, {a1 b1 c1} and {a2 b1 c1}."""
    names, tickers = ["a1", "a2", "a3", "b1", "b2", "c1"], ["MSFT"] * 3 + ["GOOG"] * 2 + ["AAPL"]
    events = pa.table(
        {
            "name": names,
            "ts": range(6),
            "type": ["E"] * 6,
            "ticker": tickers,
            "price": [3, 5, 8, 7, 13, 9],
        }
    )
    stocks = {"MSFT": "MSFT", "GOOG": "GOOG", "AAPL": "AAPL"}
    found = matches(events, paper_query("lazy-figure-1"), time_unit="minutes", parameters=stocks)
    assert found == {"a1 b1 c1", "a2 b1 c1"}


class TestTime:
    """TIME, figure 1: the paper prints 15/225 for (a1, b3, c2); its own definitions give the numbers below."""

    EVENTS = stream("a1[1,5] c2[3,5] b3[3,5] c4[4,8]")

    @pytest.mark.parametrize(
        ("strategy", "expected"),
        [("any", {"a1 b3 c2": 25, "a1 b3 c4": 27}), ("next", {"a1 b3 c2": 24, "a1 b3 c4": 25})],
    )
    def test_confidence(self, strategy: str, expected: dict[str, int]) -> None:
        query = f"PATTERN SEQ(A a, B b, C c) WHERE skip_till_{strategy}_match {{ }} WITHIN 4"
        found = by_match(self.EVENTS, query, "confidence", **BOUNDS)
        assert found == pytest.approx({match: worlds / 225 for match, worlds in expected.items()}, abs=1e-12)

    def test_tightest_range(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
        assert by_match(self.EVENTS, query, "earliest", **BOUNDS) == {"a1 b3 c2": 1, "a1 b3 c4": 1}
        assert by_match(self.EVENTS, query, "latest", **BOUNDS) == {"a1 b3 c2": 5, "a1 b3 c4": 7}

    def test_four_of_five_can_be_next(self) -> None:
        """Figure 2(c): b2 and b3 overlap a1, b4 and b5 start when it has ended, b6 always comes after b4."""
        events = stream("a1[1,4] b2[2,5] b3[3,6] b4[5,7] b5[6,7] b6[8,9]")
        query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { } WITHIN 20"
        assert matches(events, query, **BOUNDS) == {"a1 b2", "a1 b3", "a1 b4", "a1 b5"}

    def test_all_matches_or_the_next_one(self) -> None:
        """Section 2.1: Query 1 on a b1 b2 c d has two matches, and one if it takes the next match."""
        rows = [("a1", 0, "TaskStart", None), ("b1", 2, "CPU", 0.97), ("b2", 4, "CPU", 0.98)]
        rows += [("c1", 6, "TaskFinish", None), ("d1", 8, "CPU", 0.5)]
        events = pa.table({name: [row[i] for row in rows] for i, name in enumerate(["name", "ts", "type", "value"])})
        events = events.append_column("taskId", pa.array([1] * 5)).append_column("nodeId", pa.array([7] * 5))
        text = paper_query("time-q1-cluster-monitoring")
        returned = cepheid.match(events, text, time_unit="s", engine="reference")
        assert returned.column_names == ["match_start", "match_end", "a", "b", "c"]
        assert {row["b"]["name"] for row in returned.to_pylist()} == {"b1", "b2"}
        assert matches(events, text.replace("any_match", "next_match"), time_unit="s") == {"a1 b1 c1"}


class TestAyac:
    """AYAC, section 2.2: shoplifting, with the scores of section 3."""

    LOSS, MEAN, HOUR = 0.1, 600.0, 3600
    MODEL = Model(loss=LOSS, gaps={"y": Exponential(mean=MEAN), "z": Exponential(mean=MEAN)}, unit="seconds")

    def found(self, *readings: tuple[str, int, str, int]) -> dict[str, float]:
        names = ["name", "ts", "reader", "id"]
        events = pa.table({name: [row[i] for row in readings] for i, name in enumerate(names)})
        options = {"type": None, "time_unit": "s", "model": self.MODEL}
        return by_match(events, paper_query("ayac-shoplifting"), **options)

    def survival(self, seconds: float) -> float:
        return 2.718281828459045 ** (-seconds / self.MEAN)

    def not_seen_at_the_register(self, seconds: float) -> float:
        stays = self.survival(seconds)
        return stays / (self.LOSS * (1 - stays) + stays)

    def test_shelf_then_exit(self) -> None:
        found = self.found(("x1", 0, "A", 1), ("z1", 600, "C", 1))
        assert found["x1 z1"] == pytest.approx(self.not_seen_at_the_register(600), abs=1e-9)

    def test_read_at_the_register(self) -> None:
        assert self.found(("x1", 0, "A", 1), ("y1", 300, "B", 1), ("z1", 600, "C", 1)) == {}

    def test_another_tag_at_the_register(self) -> None:
        assert set(self.found(("x1", 0, "A", 1), ("y1", 300, "B", 2), ("z1", 600, "C", 1))) == {"x1 z1"}

    def test_the_shelf_reading_was_lost(self) -> None:
        """x is uniform over the 12 hours before z; the default x.id[z.id] makes its predicates hold."""
        found = self.found(("z1", 12 * self.HOUR, "C", 1))
        window, step = 12 * self.HOUR, 1.0
        inside = sum(self.not_seen_at_the_register(window - t) for t in range(window)) * step / window
        # 0.1 times the chance that no register visit was missed: below the threshold, so nothing is reported.
        assert self.LOSS * inside < 0.05
        assert found == {}

    def test_the_shelf_reading_was_lost_and_the_register_is_often_skipped(self) -> None:
        rarely = Model(loss=self.LOSS, gaps={"y": Exponential(mean=self.MEAN, happens=0.3)}, unit="seconds")
        events = pa.table({"name": ["z1"], "ts": [0], "reader": ["C"], "id": [1]})
        text = paper_query("ayac-shoplifting")
        found = by_match(events, text, type=None, time_unit="s", model=rarely)
        window = 12 * self.HOUR

        def absent(seconds: float) -> float:
            happens = 0.3 * (1 - self.survival(seconds))
            return (1 - happens) / (self.LOSS * happens + 1 - happens)

        expected = self.LOSS * sum(absent(t + 0.5) for t in range(window)) / window
        assert expected > 0.05
        assert found == pytest.approx({"- z1": expected}, rel=1e-6)
