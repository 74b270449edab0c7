"""Loss rates, gap distributions and the scores of incomplete matches."""

from cepheid.model.distributions import Empirical, Exponential, Gamma, LogNormal, Uniform, Weibull
from cepheid.model.em import TripFit, fit_trips
from cepheid.model.fit import FamilyFit, compare_families, fit_from_statistics, fit_gap
from cepheid.model.gap import (
    GapDistribution,
    check_distribution,
    distribution_from_json,
    distribution_to_json,
    register_distribution,
)
from cepheid.model.gap_statistics import BINS_PER_OCTAVE, GapStatistics, Trips, gap_bin
from cepheid.model.loss_estimate import LossEstimate, estimate_loss
from cepheid.model.loss_kinds import ByAttribute, ByHour
from cepheid.model.loss_model import ComponentModel, Model, load_model, model_from_json, model_to_json
from cepheid.model.score_tables import ScoreTable, join_tables, score_table
from cepheid.model.scores import SCORINGS, Scoring, score, score_limit
from cepheid.model.segments import Ends, SegmentItem
from cepheid.model.table_arrays import TableArrays
from cepheid.model.waiting import end_waits

__all__ = [
    "BINS_PER_OCTAVE",
    "SCORINGS",
    "ByAttribute",
    "ByHour",
    "ComponentModel",
    "Empirical",
    "Ends",
    "Exponential",
    "FamilyFit",
    "Gamma",
    "GapDistribution",
    "GapStatistics",
    "LogNormal",
    "LossEstimate",
    "Model",
    "ScoreTable",
    "Scoring",
    "SegmentItem",
    "TableArrays",
    "TripFit",
    "Trips",
    "Uniform",
    "Weibull",
    "check_distribution",
    "compare_families",
    "distribution_from_json",
    "distribution_to_json",
    "end_waits",
    "estimate_loss",
    "fit_from_statistics",
    "fit_gap",
    "fit_trips",
    "gap_bin",
    "join_tables",
    "load_model",
    "model_from_json",
    "model_to_json",
    "register_distribution",
    "score",
    "score_limit",
    "score_table",
]
