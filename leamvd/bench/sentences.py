"""What was seen, as Markdown: a text for each part of the bench, made from its tables."""

from collections.abc import Callable

import pandas as pd

from leamvd.bench import Tables
from leamvd.bench.report import (
    FULL,
    LEAMVD,
    accuracies,
    baselines,
    costs,
    epochs,
    of,
    product_limit,
    rates,
    ratios,
    refusal,
    shares,
    threads,
)
from leamvd.paper.comparison import format_table, number


def time(optimizers: pd.DataFrame) -> str:
    """Return LEA-MVD's time at the largest n, and the fastest baseline of each dtype."""
    return f"A generation of LEA-MVD takes {_largest(optimizers, 'generation_seconds', _seconds)}. " + _nearest(
        optimizers, "time", "fastest", "time"
    )


def memory(optimizers: pd.DataFrame) -> str:
    """Return LEA-MVD's peak at the largest n, the leanest baseline of each dtype, and where the full matrix stops."""
    text = f"LEA-MVD's peak is {_largest(optimizers, 'peak_bytes', _bytes)}. "
    text += _nearest(optimizers, "memory", "leanest", "memory")
    stop = refusal(optimizers)
    return text + (f" CMA-ES with a full matrix grows with the square. {stop}" if stop else "")


def ratio(optimizers: pd.DataFrame) -> str:
    """Return which methods need less time than NumPy does for the normals alone, and where."""
    parts = []
    for label, rows in ratios(optimizers).groupby("label", sort=False):
        below = rows.loc[rows["ratio_to_normal"] < 1, "n"]
        if len(below):
            where = "every n" if len(below) == len(rows) else f"n = {'; '.join(f'{n:,}' for n in below)}"
            parts.append(f"{label} (at {where})")
    return f"Quicker than NumPy draws the normal samples alone: {', '.join(parts) or 'none'}."


def split(table: pd.DataFrame) -> str:
    """Return the smallest and the largest part of a generation that the optimizer takes."""
    rows = shares(table).sort_values("percent")
    if rows.empty:
        return "No generation was measured."
    ends = (
        f"{number(row['percent'])} % ({row['section']}, RBM {row['layer']})" for row in (rows.iloc[0], rows.iloc[-1])
    )
    first = rows.iloc[0]
    return (
        f"With {first['n_images']:,} images ({first['dataset']}) and {threads(rows['threads']).iloc[0]} the optimizer "
        f"takes between {' and '.join(ends)} of a generation."
    )


def objective(objectives: pd.DataFrame) -> str:
    """Return, for each place where it ran, the range of the objective's parts of NumPy's products' rate."""
    rows = rates(objectives)
    rows = rows.assign(size=rows["limit"].map({product_limit(784, 500): "large", product_limit(49, 30): "small"}))
    parts = []
    for label, group in rows.groupby("label", sort=False):
        spans = (
            f"{100 * part.min():.0f} to {100 * part.max():.0f} % for the {size} shapes"
            for size, part in group.groupby("size", sort=False)["fraction_of_products"]
        )
        parts.append(f"{label}: {', '.join(spans)}, at most {number(group['rate'].max() / 1e9)} GFLOP/s")
    return (
        f"Of the rate of NumPy's matrix products in float32 alone the objective reaches, with {'; with '.join(parts)}."
    )


def training(table: pd.DataFrame, probe: pd.DataFrame) -> str:
    """Return seconds an epoch of each trainer, and the mean accuracies of the probe on their features."""
    rows = epochs(table).to_dict("records")
    seconds = ", ".join(f"{row['trainer']} {_seconds(row['seconds'])} with {row['place']}" for row in rows)
    scores = accuracies(probe)
    found = ", ".join(f"{trainer} {scores[trainer].mean():.2f} %" for trainer in scores)
    return (
        f"An epoch takes, by threads of BLAS: {seconds}. "
        f"Accuracy of the linear probe, mean of {len(scores)} seeds: {found}."
    )


def setting(tables: Tables) -> str:
    """Return what the numbers were measured on."""
    machine = tables.machine
    versions = ", ".join(f"{name} {version}" for name, version in sorted(machine["versions"].items()))
    left_out = f" Not installed: {', '.join(machine['left_out'])}." if machine["left_out"] else ""
    return (
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, "
        f"{number(machine['memory_bytes'] / 1e9)} GB, {machine['system']}; Python {machine['python']}, {versions}; "
        f"code of commit {machine['commit']}. Profile *{machine['profile']}*, {number(machine['seconds'] / 60)} "
        f"minutes; load average before: {machine['load']}.{left_out}"
    )


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table to be displayed: its first column as index, three digits, thousands separated."""
    whole = {str(name): table[name].map("{:,}".format) for name in table.select_dtypes("int")}
    first = str(table.columns[0])
    return format_table(table.assign(**whole)).set_index(first).rename_axis(index=None, columns=first)


def listed(table: pd.DataFrame) -> str:
    """Return a table of long texts as Markdown, where they are wrapped."""
    if table.empty:
        return "None."
    lines = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |" for line in lines)


def _largest(optimizers: pd.DataFrame, column: str, shown: Callable[[float], str]) -> str:
    own = of(LEAMVD, costs(optimizers))
    rows = own.loc[own.groupby("dtype", sort=False)["n"].idxmax()]
    return " and ".join(
        f"{shown(row[column])} at n = {row['n']:,} in {row['dtype']}" for row in rows.to_dict("records")
    )


def _nearest(optimizers: pd.DataFrame, column: str, superlative: str, what: str) -> str:
    rows = baselines(optimizers)
    rows = rows[rows["method"] != FULL].sort_values(column)
    return " ".join(
        f"Of the others in {row['dtype']} {row['method']} is the {superlative}, with {number(row[column])} times the "
        f"{what} at n = {row['n']:,}."
        for row in rows.drop_duplicates("dtype").sort_values("dtype").to_dict("records")
    )


def _seconds(value: float) -> str:
    return f"{number(value)} s" if value >= 1 else f"{number(1e3 * value)} ms"


def _bytes(value: float) -> str:
    return f"{number(value / 1e9)} GB" if value >= 1e9 else f"{number(value / 1e6)} MB"
