"""Draw the figure that stands in the playground's place where no script runs: `python
book/playground.py`.

The library runs a preset of the page; its draws are its own, so the run is another one.
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
PRESET = "directions-2d"
CONTROLS = {
    "function": "ellipsoid",
    "sigma0": 0.1,
    **json.loads((STATIC / "presets.json").read_text())[PRESET],
}
"""What the page's controls say with this preset."""

SEED = 1189
"""Of the library's draws, with which v lies between P and C_ani as it does on the page."""


def states() -> list[State]:
    """Run the library with the settings of the page."""
    x0, given = (CONTROLS["x1"], CONTROLS["x2"]), {"sigma0": CONTROLS["sigma0"], "seed": SEED}
    opt = leamvd.LEAMVD(x0, n_gen=CONTROLS["generation"], sigma_min=0, **given)
    found = []
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, FUNCTIONS[str(CONTROLS["function"])](X))
        found.append(opt.state)
    return found


def _plane(axes: Axes, state: State, n_elite: int = 4) -> None:
    """Draw the contours, the population, the ellipse and the directions, these at one length (v a
    half longer).
    """
    half = 1.1 * np.linalg.norm(state.population - state.mean, axis=1).max()
    x, y = (np.linspace(center - half, center + half, 60) for center in state.mean)
    values = FUNCTIONS[str(CONTROLS["function"])](np.stack(np.meshgrid(x, y), axis=-1))
    axes.contourf(
        x, y, values, np.quantile(values, np.linspace(0, 1, 14) ** 1.5), cmap="Greys", alpha=0.5
    )
    ranks, X = np.arange(len(state.population)), state.population
    for chosen, marker, size, label in (
        (ranks >= n_elite, "o", 16, "the others"),
        (ranks < n_elite, "D", 22, "elites"),
    ):
        axes.scatter(
            *X[chosen].T,
            c=ranks[chosen],
            vmin=0,
            vmax=len(X),
            marker=marker,
            s=size,
            edgecolors="black",
            linewidths=0.5,
            label=label,
        )
    axes.plot(*X[0], "*", color="black", markersize=11, label="the best")
    axes.plot(
        *state.mean,
        "+",
        color=PURPLE,
        markersize=11,
        markeredgewidth=2,
        label="mean, and ellipse: $\\sigma$",
    )
    axes.add_patch(
        Ellipse(tuple(state.mean), *(2 * state.std), fill=False, edgecolor=PURPLE, linewidth=1.8)
    )
    v = state.beta2 * state.path + (1 - state.beta2) * abs(state.descent_mean) * state.descent
    for vector, color, style, label, length in (
        (v, VERMILION, ":", "v", 1.5),
        (state.path, GREEN, "-", "P", 1.0),
        (state.descent, BLUE, "--", "$C_{ani}$", 1.0),
    ):
        end = state.mean + 0.4 * half * length * vector / np.linalg.norm(vector)
        axes.plot(*np.stack([state.mean, end]).T, style, color=color, linewidth=1.8)
        axes.annotate(label, end, color=color, fontweight="bold")
    axes.set(xlabel="$x_1$", ylabel="$x_2$", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), aspect="equal")
    axes.set_title(f"{CONTROLS['function']}, generation {state.generation}")


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
