"""Numbers that pages type instead of pasting: formulas and sizes, held to the code that they describe."""

import itertools
import re

import numpy as np
import pytest
from prose import CONTRIBUTING, PAGES, README
from sklearn.datasets import load_digits

import leamvd
from leamvd.campaign import archive
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers import directions, sampling
from leamvd.optimizers.random_streams import TILE
from leamvd.studies.functions import FUNCTIONS

METHOD, DATA = PAGES["method"], PAGES["run_it_yourself"]
FORMULAS = {name: body for body, name in re.findall(r"^\$\$\n((?:.+\n)+?)\$\$ \((eq-[\w-]+)\)$", METHOD, re.MULTILINE)}
STARTS = tuple(map(float, re.findall(r"At the start \$\\beta_1 = (\S+)\$ and \$\\beta_2 = (\S+)\$", METHOD)[0]))
LISTING = METHOD[METHOD.index(":name: tab-listing") :]


def numbers(name: str) -> list[float]:
    """Return the decimal numbers and lone integers of a formula, in order; indices and exponents are none."""
    text = re.sub(r"[_^](?:\{[^{}]*\}|\w)|\\[a-z]+", "", FORMULAS[name])
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", text)]


@pytest.fixture(scope="module")
def opt() -> leamvd.LEAMVD:
    return leamvd.LEAMVD([0.0, 0.0])


@pytest.fixture(scope="module")
def steps() -> list[tuple[leamvd.State, leamvd.State]]:
    """Each generation and the next, of a search that succeeds and fails, and of one that only resets."""
    found = []
    for x0 in ([0.3, -0.4], [1e-6, -1e-6]):
        opt = leamvd.LEAMVD(x0, seed=3, n_gen=80, sigma_min=0)
        states = []
        while not opt.stop():
            X = opt.ask()
            opt.tell(X, FUNCTIONS["rastrigin"](X))
            states.append(opt.state)
        assert (states[0].beta1, states[0].beta2) == STARTS
        found += itertools.pairwise(states)
    return found


# ---- the method


def test_averages_over_generations_weigh_as_in_the_formulas() -> None:
    assert numbers("eq-path") == pytest.approx([directions.RATE, 1 - directions.RATE])
    assert numbers("eq-descent") == pytest.approx([directions.RATE, 1 - directions.RATE, 0])


def test_step_sizes_follow_the_formulas(steps: list[tuple[leamvd.State, leamvd.State]]) -> None:
    most, late, _, early, _, weak, _, strong, _ = numbers("eq-beta1")
    ceiling, rise, floor, fall = numbers("eq-beta2")
    seen = set()
    for before, now in steps:
        success, b = now.fitness[0] != before.fitness[0], before.beta1
        seen.add((success, b > 1))
        if success:
            beta1, beta2 = min(most, late * b) if b > 1 else early * b, min(ceiling, before.beta2 + rise)
        else:
            beta1, beta2 = weak * b if b < 1 else strong * b, max(floor, before.beta2 - fall)
        if not success and now.stagnation == 0:
            assert [*now.std, now.beta1] == pytest.approx([*2 * numbers("eq-reset")[:1], numbers("eq-reset")[1]])
            seen.add("reset")
        else:
            assert (now.beta1, now.beta2) == pytest.approx((beta1, beta2))
    assert seen == {(True, True), (True, False), (False, True), (False, False), "reset"}


def test_settings_are_the_defaults(opt: leamvd.LEAMVD) -> None:
    assert f"{opt.sigma0}^2 I" in FORMULAS["eq-start"]
    assert f"a = {opt.reading.exponent}" in FORMULAS["eq-weights"]
    size = f"10^{{{np.log10(opt.sigma_min):.0f}}}"
    assert rf"\sigma_\text{{min}} = {size}" in FORMULAS["eq-stop"]
    row = LISTING[LISTING.index("* - input") : LISTING.index("* - 1\n")]
    for name, value in {"lambda": opt.population_size, "sigma_\\text{min}": size}.items():
        assert rf"\{name} = {value}$" in row
    for name, value in {"elite": opt.n_elite, "gen": opt.n_gen}.items():
        assert re.search(rf"n_\\text\{{{name}\}} = {value}(?:,)?\$", row)
    assert rf"a population of $\lambda = {opt.population_size}$ points" in METHOD
    assert rf"$n_\text{{elite}} = {opt.n_elite}$ best survive" in METHOD


def test_the_factor_is_that_of_the_formula() -> None:
    assert f"with probability }} {sampling.PERTURBED}" in FORMULAS["eq-factor"]
    low, high = map(float, re.findall(r"u \\sim \\mathcal\{U\}\((\S+), (\S+)\)", METHOD)[0])
    opt = leamvd.LEAMVD(np.zeros(200_000), sigma0=1e-9, seed=1)
    opt.tell(opt.ask(), np.arange(24.0))
    still = opt.state._replace(mean=np.ones(200_000), std=np.zeros(200_000), path=0 * opt.state.path,
                               descent=0 * opt.state.descent, descent_norm=0.0)  # fmt: skip
    opt.state = still
    factor = opt.ask()
    changed = factor[factor != 1] - 1
    assert changed.size / factor.size == pytest.approx(sampling.PERTURBED, rel=0.02)
    assert (changed.min(), changed.max()) == pytest.approx((low, high), abs=1e-3)


LINES = {  # of the listing, by the formula that it repeats
    "19": r"\beta_2 = \min(1, \beta_2 + 0.2)",
    "20–21": r"\beta_1 = \min(3, 1.1 \beta_1)",
    "22–24": r"\beta_1 = 1.4 \beta_1",
    "27": r"\beta_2 = \max(0, \beta_2 - 0.1)",
    "28–29": r"\beta_1 = 0.8 \beta_1",
    "30–33": r"\beta_1 = 0.5 \beta_1",
}


def test_the_listing_says_what_the_formulas_say() -> None:
    formulas = re.sub(r"\\[,;] ", "", FORMULAS["eq-beta1"] + FORMULAS["eq-beta2"])
    for line, rule in LINES.items():
        assert rule.partition(" = ")[2] in formulas
        row = re.findall(rf"^\* - {line}\n((?:  .*\n)+)", LISTING, re.MULTILINE)[0]
        ours = row.split("\n  - ")[1]
        assert ours.startswith(f"${rule}$"), line


# ---- many machines, data, the README


def test_sizes_of_shards(opt: leamvd.LEAMVD) -> None:
    size, elite, m, message = opt.population_size, opt.n_elite, 4, 20e-6
    products = 8 * (size + 3) * (m + 2)
    said = [
        f"4 * ({size} + 5) = {4 * (size + 5)} bytes for each column",
        f"8 * ({size} + 3) * ({m} + 2) = {products:,} bytes", f"{size - elite} after the first generation",
        f"over 512 shards take {2 * 2 * np.log2(512) * message * 1e3:.2f} ms",
        f"more than {8 * message * 1e6:.0f} µs", f"{4 * size * 10_000 * 500 / 1e6:.0f} MB in a generation for {size} ",
        f"4 * ({elite} + 4) = {4 * (elite + 4)} bytes for each column, {4 * (elite + 4) * 1e11 / 1e12:.1f} TB",
        f"a log of {(8 * size + products) / 1000:.1f} kB", f"at a multiple of {TILE:,}",
        f"blocks of {directions.CHUNK:,} columns", f"{elite + 4} vectors, where `State` has {size + 4}",
    ]  # fmt: skip
    text = re.sub(r"\s+", " ", CONTRIBUTING)
    assert [words for words in said if words not in text] == []


def test_sizes_of_the_data_sets() -> None:
    images = load_digits().images
    said = f"scikit-learn's {len(images):,} embedded handwritten digits of {images.shape[1]}×{images.shape[2]} pixels"
    assert said in DATA
    table = archive.read("linear_cost", "training")
    assert f"The {table['n_images'].max():,} training and 10,000 test images" in DATA
    assert f"each {28 // 7}×{28 // 7} block" in DATA


def test_what_the_readme_says_of_the_optimizer(opt: leamvd.LEAMVD) -> None:
    said = re.sub(r"\s+", " ", README)
    assert n_parameters(500, 2000) > 1e6, "weights of the largest network"
    assert f"# ({opt.population_size}, n) at first, then ({opt.population_size - opt.n_elite}, n)" in said
    rows = archive.read("linear_cost", "optimizers").query("method == 'leamvd' and threads == 1").set_index("n")
    assert (rows.loc[10**6, "ratio_to_normal"] < 1).all(), "less time than NumPy needs to draw the samples"
    memory = (rows["peak_bytes"] / rows["population_bytes"])[rows.index >= 10**6]
    (told,) = re.findall(r"about (\S+) times the memory of its population", said)
    assert memory.max() == pytest.approx(float(told), abs=0.05)
    assert rows.index.max() == 10**8, "a hundred million variables"
    assert (
        "After ten generations without a better point the paper's algorithm sets all standard deviations to 1." in said
    )
