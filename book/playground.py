"""Draw the figure that stands in the playground's place where no script runs: `python
book/playground.py`.

The library runs what the page opens with; its draws are its own, so the run is another one.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import leamvd
from leamvd.optimizers.state import State
from leamvd_paper.data.functions import FUNCTIONS
from leamvd_paper.studies.plots import BLUE, GREEN, PURPLE, VERMILION, log_scale, panels, styled

STATIC = Path(__file__).parent / "static"
PRESET = "opening"
CONTROLS = {
    "function": "ellipsoid",
    **json.loads((STATIC / "presets.json").read_text())[PRESET],
}
"""What the page's controls say when it is opened."""

HALF_WIDTH = 4  # of the whole view

COST = FUNCTIONS[str(CONTROLS["function"])]

SEED = 3863
"""Of the library's draws, with which v lies between P and C_ani as it does on the page."""


def states() -> list[State]:
    """Run the library with the settings of the page."""
    opt = leamvd.LEAMVD(
        (CONTROLS["x1"], CONTROLS["x2"]),
        n_gen=CONTROLS["generation"],
        sigma_min=0,
        sigma0=CONTROLS["sigma0"],
        seed=SEED,
    )
    found = []
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, COST(X))
        found.append(opt.state)
    return found


def _plane(axes: Axes, state: State) -> None:
    """Draw the contours, the population, the ellipse and the directions."""
    X = state.population
    side = np.linspace(-HALF_WIDTH, HALF_WIDTH, 60)
    values = COST(np.stack(np.meshgrid(side, side), axis=-1))
    levels = np.quantile(values, np.linspace(0, 1, 14) ** 1.5)
    axes.contourf(side, side, values, levels, cmap="Greys", alpha=0.5)
    ranks = np.arange(len(X))
    n_elite = 4
    look = {"vmin": 0, "vmax": len(X), "edgecolors": "black", "linewidths": 0.5}
    others = X[n_elite:].T
    axes.scatter(*others, c=ranks[n_elite:], marker="o", s=16, label="the others", **look)
    elites = X[:n_elite].T
    axes.scatter(*elites, c=ranks[:n_elite], marker="D", s=22, label="elites", **look)
    axes.plot(*X[0], "*", color="black", markersize=11, label="the best")
    axes.plot(
        *state.mean,
        "+",
        color=PURPLE,
        markersize=11,
        markeredgewidth=2,
        label="mean, and ellipse: $\\sigma$",
    )
    sizes = 2 * state.std
    axes.add_patch(Ellipse(tuple(state.mean), *sizes, fill=False, edgecolor=PURPLE, linewidth=1.8))
    _arrows(axes, state, 0.3 * HALF_WIDTH)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
    axes.set(xlim=(-HALF_WIDTH, HALF_WIDTH), ylim=(-HALF_WIDTH, HALF_WIDTH))
    axes.set_title(f"{CONTROLS['function']}, generation {state.generation}")


def _arrows(axes: Axes, state: State, size: float) -> None:
    """Draw the directions as arrows of one size, v a half longer."""
    v = state.beta2 * state.path + (1 - state.beta2) * abs(state.descent_mean) * state.descent
    arrows = [
        (v, VERMILION, ":", "v", 1.5),
        (state.path, GREEN, "-", "P", 1.0),
        (state.descent, BLUE, "--", "$C_{ani}$", 1.0),
    ]
    for vector, color, style, label, length in arrows:
        end = state.mean + size * length * vector / np.linalg.norm(vector)
        line = np.stack([state.mean, end]).T
        axes.plot(*line, style, color=color, linewidth=1.8)
        axes.annotate(label, end, color=color, fontweight="bold")


@styled
def figure() -> Figure:
    """Return the figure of the preset: the plane, and error, step sizes and standard deviations."""
    found = states()
    drawn, axes = panels(3, 2, height=4.6, width_ratios=(5, 3))
    for unused in axes[:, 0]:
        unused.remove()
    _plane(drawn.add_subplot(axes[0, 0].get_gridspec()[:, 0]), found[-1])
    drawn.legend(loc="outside lower center", ncols=2)
    generations = np.arange(1, len(found) + 1)
    error, beta, std = axes[:, 1]
    error.plot(generations, [state.fitness[0] for state in found], color=BLUE)
    error.set_title("error of the best")
    beta.plot(generations, [state.beta1 for state in found], color=PURPLE, label="$\\beta_1$")
    beta.plot(generations, [state.beta2 for state in found], "--", color=GREEN, label="$\\beta_2$")
    beta.set(title="step sizes", ylim=(0, 3.2))
    beta.legend(ncols=2)
    std.plot(generations, [state.std_norm / np.sqrt(2) for state in found], color=BLUE)
    std.set(title="$\\|\\sigma\\| / \\sqrt{n}$", xlabel="generation")
    for chart in (error, std):
        log_scale(chart, "y")
    for chart in axes[:, 1]:
        chart.xaxis.get_major_locator().set_params(integer=True)
    return drawn


if __name__ == "__main__":
    with plt.rc_context({"svg.hashsalt": "leamvd"}):
        figure().savefig(STATIC / "playground.svg", metadata={"Date": None})
