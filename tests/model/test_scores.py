"""Segment scores against closed forms and against nested adaptive quadrature written without the package."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

from cepheid.errors import ModelError
from cepheid.model import (
    Empirical,
    Ends,
    Exponential,
    Gamma,
    LogNormal,
    SegmentItem,
    Uniform,
    Weibull,
    score,
    score_limit,
    score_table,
)

WINDOW = 200.0
TOLERANCE = 1e-6


def missing(gap, loss=0.2):
    return SegmentItem("missing", loss, gap)


def negative(gap, loss=0.1):
    return SegmentItem("negative", loss, gap)


# The oracle: docs/semantics.md read aloud, with gaps as plain Python functions.


def plain_gap(gap):
    """(density, cdf, jumps) of an exponential or uniform gap."""
    p = gap.happens
    if isinstance(gap, Exponential):
        return (
            lambda t: p * math.exp(-t / gap.mean) / gap.mean,
            lambda t: p * (1 - math.exp(-t / gap.mean)),
            (),
        )
    width = gap.high - gap.low
    return (
        lambda t: p / width if gap.low <= t <= gap.high else 0.0,
        lambda t: p * min(max((t - gap.low) / width, 0.0), 1.0),
        (gap.low, gap.high),
    )


def plain_groups(items):
    """The missing positives and the negatives before each of them and at the end, with jumps of everything."""
    groups, positives = [[]], []
    for item in items:
        density, cdf, jumps = plain_gap(item.gap)
        if item.kind == "missing":
            positives.append((item.loss, density, cdf, jumps))
            groups.append([])
        else:
            groups[-1].append((item.loss, cdf, jumps))
    return positives, groups


def all_sums(items, depth):
    """Where integrands may have kinks: jumps and sums of jumps."""
    jumps = {0.0} | {j for item in items for j in plain_gap(item.gap)[2]}
    return {sum(c) for n in range(1, depth + 1) for c in itertools.combinations_with_replacement(sorted(jumps), n)}


def nested(items, t, factor):
    """∫ over the times of the missing positives of all densities times factor(loss, F(gap)) of each negative."""
    positives, groups = plain_groups(items)
    sums = all_sums(items, 2)

    def rest(q, t):
        here = 1.0
        for loss, cdf, _ in groups[q]:
            here *= factor(loss, cdf(t))
        if q == len(positives):
            return here
        loss, density, _, jumps = positives[q]

        def integrand(s):
            value = density(s)
            for other, other_cdf, _ in groups[q]:
                value *= factor(other, other_cdf(s))
            return value * rest(q + 1, t - s) if value else 0.0

        own = set(jumps) | {j for _, _, each in groups[q] for j in each}
        cuts = sorted({0.0, t} | {c for c in own if 0 < c < t} | {t - c for c in sums if 0 < t - c < t})
        pieces = [
            integrate.quad(integrand, a, b, epsabs=1e-10, epsrel=1e-9, limit=60)[0]
            for a, b in itertools.pairwise(cuts)
            if b - a > 1e-12 and integrand((a + b) / 2) != 0.0
        ]
        return loss * math.fsum(pieces)

    return rest(0, t)


def oracle(items, t, scoring):
    positives, groups = plain_groups(items)
    if scoring == "paper" and len(positives) == 1:
        loss, _, cdf, _ = positives[0]
        value = loss * cdf(t)
        for group in groups:
            for other, other_cdf, _ in group:
                value *= (1 - other_cdf(t)) / (other * other_cdf(t) + 1 - other_cdf(t))
        return value
    if scoring == "paper" and len(positives) == 2 and not any(groups):
        (first_loss, _, first_cdf, first_jumps), (second_loss, second_density, _, second_jumps) = positives
        cuts = sorted({0.0, t} | {j for j in first_jumps + second_jumps if j < t})
        pieces = (
            integrate.quad(lambda s: second_density(s) * first_cdf(s), a, b, epsabs=1e-12)[0]
            for a, b in itertools.pairwise(cuts)
        )
        return first_loss * second_loss * math.fsum(pieces)
    return nested(items, t, lambda loss, f: (1 - f) / (loss * f + 1 - f))


def segments(gaps, most_missing):
    """Every segment of up to so many missing positives, with and without a negative in each place around them."""
    for count in range(most_missing + 1):
        for with_negative in itertools.product([False, True], repeat=count + 1):
            draw = itertools.cycle(gaps)
            items = []
            for place, has in enumerate(with_negative):
                items += [negative(next(draw), 0.05 + 0.1 * place)] if has else []
                items += [missing(next(draw), 0.3 - 0.1 * place)] if place < count else []
            yield items


def shape(items):
    return "".join("P" if item.kind == "missing" else "N" for item in items) or "nothing"


EXPONENTIAL = (Exponential(40), Exponential(25, 0.8), Exponential(90), Exponential(60))
UNIFORM = (Uniform(0, 60), Uniform(10, 50, 0.7), Uniform(0, 150), Uniform(20, 90))


def cases(gaps, most_missing, keep):
    return [
        pytest.param(items, id=f"{shape(items)}-{type(gaps[0]).__name__}")
        for items in segments(gaps, most_missing)
        if keep(shape(items))
    ]


def three(shape):
    return shape.count("P") == 3


def some(shape):
    return shape in ("PPP", "NPNPP")


def check(items, scoring, spans):
    table = score_table(items, WINDOW, scoring)
    assert table.error_bound <= TOLERANCE
    for span in spans:
        expected = oracle(items, span, scoring)
        assert score(items, span, scoring) == pytest.approx(expected, abs=1e-9)
        assert float(table.score(span)) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.some(12)
@pytest.mark.parametrize("scoring", ["exact", "paper"])
@pytest.mark.parametrize("items", cases(EXPONENTIAL, 2, bool) + cases(EXPONENTIAL, 3, some) + cases(UNIFORM, 2, bool))
def test_scores_match_nested_quadrature(items, scoring):
    check(items, scoring, [17.3, 145.5])


@pytest.mark.parametrize("items", cases(UNIFORM, 3, some))
def test_three_missing_with_uniform_gaps(items):
    check(items, "exact", [117.0])


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["exact", "paper"])
@pytest.mark.parametrize("items", cases(EXPONENTIAL, 3, three))
def test_three_missing_with_exponential_gaps_everywhere(items, scoring):
    check(items, scoring, [17.3, 145.5])


@pytest.mark.slow
@pytest.mark.parametrize("items", cases(UNIFORM, 3, three))
def test_three_missing_with_uniform_gaps_everywhere(items):
    check(items, "exact", [117.0])


# Closed forms.


@pytest.mark.parametrize(
    "gap", [Exponential(30), Gamma(0.4, 50, 0.9), LogNormal(3, 1), Weibull(0.6, 40), Uniform(5, 70)]
)
def test_one_missing_scores_loss_times_cdf(gap):
    assert score([missing(gap, 0.15)], 55.0) == pytest.approx(0.15 * float(gap.cdf(55.0)), abs=1e-14)


@pytest.mark.some(3)
@pytest.mark.parametrize("shapes", [(1, 1), (0.3, 0.5), (0.05, 2.5), (1, 1, 1), (0.3, 1.7, 0.6), (2.2, 0.5, 4, 1)])
@pytest.mark.parametrize("span", [1e-3, 3.0, 40.0, 190.0])
def test_gamma_gaps_of_one_scale_add_up_to_a_gamma(shapes, span):
    items = [missing(Gamma(each, 25.0), 0.9) for each in shapes]
    expected = 0.9 ** len(shapes) * special.gammainc(sum(shapes), span / 25.0)
    assert score(items, span) == pytest.approx(expected, abs=1e-9)
    assert float(score_table(items, WINDOW).score(span)) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("span", [10.0, 75.0, 121.0, 199.0])
def test_uniform_gaps_add_up_to_irwin_hall(count, span):
    x = span / 50.0
    terms = ((-1) ** k * math.comb(count, k) * (x - k) ** count for k in range(math.floor(x) + 1))
    expected = min(math.fsum(terms) / math.factorial(count) if x < count else 1.0, 1.0)
    items = [missing(Uniform(0, 50), 0.9)] * count
    assert score(items, span) == pytest.approx(0.9**count * expected, abs=1e-9)


def test_a_narrow_density_in_a_wide_window_is_not_stepped_over():
    items = [missing(Gamma(1e4, 0.1), 0.9)] * 3  # each gap is 1000 ± 10
    table = score_table(items, 1e6)
    for span in (2000.0, 2980.0, 3000.0, 3020.0, 5000.0, 9e5):
        expected = 0.9**3 * special.gammainc(3e4, span / 0.1)
        assert float(table.score(span)) == pytest.approx(expected, abs=TOLERANCE)


def test_a_histogram_of_equal_bins_is_a_uniform():
    histogram = Empirical(tuple(10.0 * i for i in range(8)), (1 / 7,) * 7, 0.9)
    uniform = Uniform(0, 70, 0.9)
    for scoring in ("exact", "paper", "posterior"):
        a = [negative(histogram), missing(histogram), negative(histogram), missing(histogram)]
        b = [negative(uniform), missing(uniform), negative(uniform), missing(uniform)]
        ours, theirs = (score(items, 95.0, scoring, Ends(Exponential(30.0))) for items in (a, b))
        assert ours == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("gap", [LogNormal(3.2, 1.4), Weibull(0.5, 30), Weibull(3, 60), Gamma(0.2, 80)])
def test_missing_then_negative_by_quantiles(gap):
    # Integrating over the quantile instead of the time needs no density at all.
    after = Exponential(35.0)

    def time_of(share):
        low, high = -700.0, math.log(WINDOW)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if float(gap.cdf(math.exp(middle))) < share else (low, middle)
        return math.exp(high)

    def integrand(share):
        f = float(after.cdf(max(120.0 - time_of(share), 0.0)))
        return (1 - f) / (0.1 * f + 1 - f)

    top = float(gap.cdf(120.0))
    expected = 0.2 * integrate.quad(integrand, 0.0, top, epsabs=1e-8, limit=200)[0]
    assert score([missing(gap), negative(after)], 120.0) == pytest.approx(expected, abs=2e-8)


def test_one_negative_never_scores_higher_after_longer():
    for gap in (Exponential(30), Gamma(0.4, 50), Uniform(20, 90)):
        assert score_table([negative(gap)], WINDOW).falls
        assert score_table([missing(gap)], WINDOW).rises


def test_several_negatives_multiply():
    gaps = [Exponential(30), Uniform(20, 190), Weibull(2, 80)]
    single = math.prod(score([negative(gap)], 66.0) for gap in gaps)
    assert score([negative(gap) for gap in gaps], 66.0) == pytest.approx(single, abs=1e-14)


def test_without_loss_what_was_not_seen_did_not_happen():
    certain = Uniform(0, 50)
    for scoring in ("exact", "paper", "posterior"):
        assert score([negative(certain, 0.0)], 150.0, scoring) == 1.0
        assert score([missing(certain, 0.0)], 150.0, scoring) == 0.0
        assert score([missing(certain, 0.0), negative(certain)], 150.0, scoring) == 0.0


# Limits and bad input.


def test_nothing_between_two_events_scores_one():
    for scoring in ("exact", "paper", "posterior"):
        assert score([], 12.0, scoring) == 1.0


def test_no_time_between_two_events():
    assert score([missing(Exponential(5))], 0.0) == 0.0
    assert score([negative(Exponential(5))], 0.0) == 1.0
    assert float(score_table([missing(Exponential(5))], 10.0).score(0.0)) == 0.0


GAPS = st.sampled_from(
    [
        Exponential(40),
        Exponential(3, 0.6),
        Gamma(0.5, 60),
        Gamma(6, 9),
        LogNormal(3, 0.8),
        Weibull(0.7, 30, 0.9),
        Uniform(0, 80),
        Uniform(30, 45),
        Empirical((0, 5, 9, 60, 100), (0.1, 0.5, 0.3, 0.1)),
    ]
)
ITEMS = st.lists(
    st.builds(SegmentItem, st.sampled_from(["missing", "negative"]), st.sampled_from([0.0, 0.001, 0.1, 0.5]), GAPS),
    max_size=5,
).filter(lambda items: sum(item.kind == "missing" for item in items) <= 2)
SPANS = st.floats(0.0, WINDOW)


@given(ITEMS, SPANS)
def test_scores_are_probabilities_below_their_limit(items, span):
    for scoring in ("exact", "paper", "posterior"):
        value = score(items, span, scoring)
        assert 0.0 <= value <= 1.0
        assert value <= score_limit(items, WINDOW, scoring) + 1e-9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SegmentItem("positive", 0.1, Exponential(1)), "'missing' or 'negative'"),
        (lambda: SegmentItem("missing", 1.0, Exponential(1)), r"outside \[0, 1\)"),
        (lambda: SegmentItem("missing", -0.1, Exponential(1)), r"outside \[0, 1\)"),
        (lambda: score([], -1.0), "cannot span"),
        (lambda: score([], math.nan), "cannot span"),
        (lambda: score([], 1.0, "exakt"), "did you mean 'exact'"),
        (lambda: score(["x"], 1.0), "no SegmentItem"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ModelError, match=message):
        make()
