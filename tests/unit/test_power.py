"""Numbers of test items where the truth is known: by hand, and by simulation with the board's own resampling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from boards import P, S, put_metrics, run_folder

import nerprobe.power
from nerprobe.bootstrap import Floats, resampled, weight_matrix
from nerprobe.compare import p_values, quantiles, visible_gap
from nerprobe.errors import UnknownModelError
from nerprobe.leaderboard import write_board
from nerprobe.power import BOUND, effect, needed_items, pair_cells, power_report, search_items

# The toy: each item has one gold mention; the first encoder finds it with probability .62, the second with .5, apart
# from each other, and neither says anything else. F1 = 2 p / (1 + p).
FIRST, SECOND = 0.62, 0.5
CELLS = np.array([[2 * a, a + 1, 2 * b, b + 1] for a in (0, 1) for b in (0, 1)], dtype=np.float64)
SHARES = np.array([(FIRST if a else 1 - FIRST) * (SECOND if b else 1 - SECOND) for a in (0, 1) for b in (0, 1)])
# By the delta method: d = 1.24 / 1.62 - 1 / 1.5 = .098765; the variance of what an item adds is (2 / (1 + p)^2)^2 p (1 - p):
# .136830 + .197531 = .334361; (1.959964 + .841621)^2 .334361 / .098765^2 = 269.04.
BY_HAND = 269


def test_the_quantiles_by_table() -> None:
    assert quantiles(alpha=0.05, power=0.8) == pytest.approx(1.959964 + 0.841621, abs=1e-6)


def test_the_effect_by_hand() -> None:
    assert float(effect(CELLS, SHARES)) == pytest.approx(0.098765 / np.sqrt(0.334361), rel=1e-4)


def drawn(items: int, rng: np.random.Generator, first: float = FIRST, second: float = SECOND) -> Floats:
    """Return counts of drawn items for both encoders: shape (2, items, 1 type, tp / predicted / gold)."""
    found = rng.random((2, items)) < np.array([[first], [second]])
    return np.stack([found, found, np.ones_like(found)], axis=-1)[:, :, None, :].astype(np.float64)


def separated(counts: Floats, seed: int) -> bool:
    """Say whether a board of these items separates them, the first one better."""
    weights = weight_matrix(counts.shape[1], resamples=999, seed=seed)
    first, second = (resampled(one, weights)["f1"] for one in counts)
    return bool(p_values((first - second)[:, None])[0] < 0.05 and counts[0, :, :, 0].sum() > counts[1, :, :, 0].sum())


def test_the_number_of_items_is_that_by_hand_and_separates_four_sets_of_five() -> None:
    found = needed_items(CELLS, SHARES, at_hand=100_000, alpha=0.05, power=0.8, seed=1)
    assert found.items == pytest.approx(BY_HAND, rel=0.12)
    assert found.low is not None
    assert found.high is not None
    assert found.low < (found.items or 0) < found.high < 1.3 * found.low
    rng = np.random.default_rng(5)
    told = [separated(drawn(found.items or 0, rng), seed) for seed in range(300)]
    # 300 sets tell the share to 2.3 points (one standard error); the answer rests on 400, so to 2.
    assert np.mean(told) == pytest.approx(0.8, abs=0.08)


def test_power_at_a_size_is_that_of_a_direct_simulation() -> None:
    ours = nerprobe.power.simulated_power(CELLS, SHARES, items=100, alpha=0.05, rng=np.random.default_rng(2))
    rng = np.random.default_rng(3)
    assert ours == pytest.approx(np.mean([separated(drawn(100, rng), seed) for seed in range(400)]), abs=0.1)


def test_the_interval_holds_the_truth_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nerprobe.power, "simulated_power", lambda *_, **__: 0.8)
    rng = np.random.default_rng(7)
    held = 0
    for seed in range(200):
        counts = rng.multinomial(150, SHARES)
        found = needed_items(CELLS, counts / 150, at_hand=150, alpha=0.05, power=0.8, seed=seed)
        beyond = found.high is None or found.high >= BY_HAND
        held += found.low is not None and found.low <= BY_HAND and beyond
    assert 0.90 <= held / 200 <= 0.99


def test_equal_scores_have_no_answer() -> None:
    even = np.array([0.25, 0.25, 0.25, 0.25])
    found = needed_items(CELLS, even, at_hand=100, alpha=0.05, power=0.8, seed=1)
    assert (found.difference, found.items, found.low, found.high) == (0.0, None, None, None)


def test_a_hair_s_breadth_is_beyond_the_bound() -> None:
    hair = np.array([0.25, 0.2499, 0.2501, 0.25])
    found = needed_items(CELLS, hair, at_hand=10_000, alpha=0.05, power=0.8, seed=1)
    assert found.difference > 0
    assert (found.items, found.high) == (None, None)


def test_where_the_other_one_may_be_better_there_is_no_upper_end() -> None:
    found = needed_items(CELLS, SHARES, at_hand=40, alpha=0.05, power=0.8, seed=1)
    assert found.high is None
    assert found.low is not None
    assert found.low < BY_HAND


def test_the_second_may_be_the_better_one() -> None:
    turned = CELLS[:, [2, 3, 0, 1]]
    one, other = (needed_items(c, SHARES, at_hand=500, alpha=0.05, power=0.8, seed=1) for c in (CELLS, turned))
    assert one.difference == -other.difference
    assert one.items == pytest.approx(other.items, rel=0.15)


def test_a_difference_in_every_item_needs_next_to_none() -> None:
    found = needed_items(np.array([[2.0, 2.0, 0.0, 1.0]]), np.ones(1), at_hand=50, alpha=0.05, power=0.8, seed=1)
    assert found.items == 2


def test_an_encoder_that_finds_nothing_is_no_exception() -> None:
    # One mention in every fifth item; the first encoder finds half of them, the second none. The difference is 0 in
    # sets without a hit, so power rises more steeply than by the normal approximation.
    cells = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [2, 2, 0, 1]], dtype=np.float64)
    shares = np.array([0.8, 0.1, 0.1])
    found = needed_items(cells, shares, at_hand=100, alpha=0.05, power=0.8, seed=1)
    assert found.items is not None
    # Resamples without a hit: (1 - hits / n)^n, about exp(-hits), must stay below 2.4 %: so 4 hits or more (at 3
    # exp(-3) = 5 %). P(at least 4 of n at 0.1) is .80 at n = 54 (binomial table).
    assert found.items == pytest.approx(54, rel=0.15)


@pytest.mark.parametrize("guess", [20, 250, 2000])
def test_the_search_gets_there_from_any_guess(guess: float) -> None:
    def steep(items: int) -> float:
        return 0.02 if items < 90 else 0.5 if items < 100 else 0.81 if items < 104 else 1.0

    seen = search_items(guess, steep, alpha=0.05, power=0.8)
    assert 0.81 in seen.values()


def test_cells_are_the_different_items_and_their_shares() -> None:
    hit, miss = {"tp": 1, "predicted": 1, "gold": 1}, {"tp": 0, "predicted": 1, "gold": 1}
    cells, shares = pair_cells([hit, hit, miss, hit], [hit, miss, miss, hit])
    assert cells.tolist() == [[0, 2, 0, 2], [2, 2, 0, 2], [2, 2, 2, 2]]
    assert shares.tolist() == [0.25, 0.25, 0.5]


def test_the_smallest_gap_by_hand() -> None:
    # Standard deviations of the three differences: of (1, -1, 0), (2, -2, 0) and (1, -1, 0): 1, 2, 1; median 1.
    values = np.array([[0.0, 1.0, 2.0], [0.0, -1.0, -2.0], [0.0, 0.0, 0.0]])
    assert visible_gap(values, alpha=0.05, power=0.8) == pytest.approx(2.801585, abs=1e-5)


def test_no_gap_without_a_pair_that_moves() -> None:
    assert visible_gap(np.zeros((5, 1)), alpha=0.05, power=0.8) is None
    assert visible_gap(np.full((5, 3), 0.4), alpha=0.05, power=0.8) is None


def test_a_true_gap_of_that_size_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(11)
    weights = weight_matrix(100, resamples=2000, seed=1)
    gaps = []
    for _ in range(30):
        values = np.stack([resampled(one, weights)["f1"] for one in drawn(100, rng)], axis=1)
        gaps.append(visible_gap(values, alpha=0.05, power=0.8) or 0.0)
    other = 2 * SECOND / (1 + SECOND) + float(np.mean(gaps))
    chance = other / (2 - other)  # of finding a mention, for this F1
    told = [separated(drawn(100, rng, first=chance), seed) for seed in range(300)]
    assert np.mean(told) == pytest.approx(0.8, abs=0.1)


def test_the_command_tells_each_board_that_has_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_folder(tmp_path, counts={"test": {"items": 6}})
    put_metrics(folder, "right")
    put_metrics(folder, "half", {"t1": "O O O", "t4": f"B-{P} O O"})
    put_metrics(folder, "half-too", {"t2": "O O", "t4": f"O O B-{S}"})
    boot = {"resamples": 100, "level": 0.95, "seed": None}
    write_board(folder, requested=["right", "half", "half-too"], bootstrap=boot)
    power_report("half", "right", [folder], power=0.8)
    out = capsys.readouterr().out
    assert "4 test items at hand" in out
    assert "test items would separate them with 80 % power [" in out
    assert "4 items" in out.split("this pair alone): ")[1]
    power_report("half", "half-too", [folder], power=0.8)
    assert "their scores are equal here" in capsys.readouterr().out
    for pair in (("half", "half"), ("half", "none")):
        with pytest.raises(UnknownModelError, match="no board has scores of both"):
            power_report(*pair, [folder], power=0.8)


def test_an_answer_beyond_the_bound_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = nerprobe.power.Power(difference=0.001, items=None, low=20_000, high=None, curve={})
    assert nerprobe.power._answer(found, power=0.8, pool=2000) == (
        f"more than {BOUND:,} test items would be needed to separate them with 80 % power"
    )
