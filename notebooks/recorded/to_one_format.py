"""Bring the provenance of all that is recorded to one format. Run once; it stays in the history.

What it writes comes from each folder's own JSON, from the labels of its tables and from their columns. Where these do
not tell, the sources of the commit do that the tables came with, which SOURCES names; what nothing tells is null.
Nothing here imports leamvd: settings of today's code would agree with today's code whatever was computed.
"""

import contextlib
import csv
import json
import lzma
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

CD = ("cd_steps", "persistent", "batch_size", "learning_rate", "momentum", "final_momentum", "momentum_epochs")
CD += ("weight_decay", "initial_weights", "weight_scale")
START, COMPUTATION = ("sigma0", "x0", "x0_epochs", "x0_limit"), ("backend", "device", "precision")
FEW = ("population_size", "n_gen", "x0_in_population")
PRESETS = {  # held to what folders spell out, by `method`
    "printed": {"shift": "printed", "projections": "repeated", "elites": "reevaluate", "x0_in_population": False}
    | {"perturbation": "column"},
    "x0-excluded": {"x0_in_population": False},
    "recommended": {"population_size": 8, "reset": "initial"},  # leamvd/optimizers/reading.py of 4e0c084
}
# leamvd/experiments/longer_searches.py and architectures.py of 4e0c084 and 28c9ab3, and
# leamvd/paper/longer_searches.py of 0fc1d50
SOURCES: dict[str, dict[str, Any]] = {
    "longer_searches": {"RBM 1": {"dataset": "mnist", "side": 7, "n_images": 10_000, "n_hidden": 30}},
    "preset_development": {"RBM 1": {"dataset": "digits", "side": 7, "n_images": 1_437, "n_hidden": 30}},
    "preset_judged": {
        "RBM 1": {"dataset": "mnist", "side": 7, "n_images": 10_000, "n_hidden": 30},
        "RBM 1, 28×28": {"dataset": "mnist", "side": 28, "n_images": 1_000, "n_hidden": 500},
    },
    "architectures": {"width": 16},
    "preset_networks": {"width": 256, "budget": 24_000},
}


def rows(name: str, table: str = "runs") -> list[dict[str, str]]:
    path = next((HERE / name).glob(f"{table}.csv*"))
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(table: list[dict[str, str]], name: str, kind: Any = str) -> list[Any]:
    """Return the different values of a column, in their order."""
    return [kind(value) for value in dict.fromkeys(row[name] for row in table)]


def whole(value: Any) -> Any:
    """Return 3.0 as 3, as the library writes settings."""
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def method(text: str, training: dict[str, Any], reading: dict[str, Any], spelled: dict[str, Any] | None = None) -> Any:
    """Return what a method's text stands for, and hold it to what the folder says of it."""
    trainer, _, own = text.partition(":")
    training, reading = dict(training), dict(reading)
    for part in own.split("+") if own else ():
        name, equals, value = part.partition("=")
        if not equals:
            reading |= PRESETS[name]
            continue
        with contextlib.suppress(ValueError):  # of a word
            value = json.loads(value)
        (training if name in training else reading)[name] = value
    seen = (
        *CD,
        "dtype",
        *((*START, *COMPUTATION) if trainer != "cd" else ()),
        *(("n_elite",) if trainer == "lea-mvd" else ()),
    )
    read = tuple(reading) if trainer == "lea-mvd" else ("n_gen",) if trainer == "cd" else FEW
    found = {"training": {n: training[n] for n in seen}, "reading": {n: reading[n] for n in read}}
    for name, value in (spelled or {}).items():
        if name == "reading":
            assert whole(value) == whole(found["reading"]), text
        elif name != "bounds" and not (training["x0"] == "none" and name == "x0_in_population"):
            assert value == {**found["reading"], **found["training"]}[name], (text, name)
    return whole(found)


def study(
    own: dict[str, Any], n_images: int, checksum: str | None, spelled: dict[str, Any], **other: Any
) -> dict[str, Any]:
    """Return the settings of a study as the library has them; a name that the folder lacks is left out."""
    own = own | other
    assert own["dataset"] == "MNIST"
    images = {"dataset": "mnist"} | {n: own[n] for n in ("side", "pooling", "binarize")}
    images |= {"n_images": n_images} | ({"image_set": own["image_set"]} if "image_set" in own else {})
    texts = {text: method(text, own["training"], own["reading"], spelled.get(text)) for text in own["methods"]}
    kept = {n: v for n, v in own.items() if n not in ("section", "dataset", "training", "reading", "methods", *images)}
    return whole({"images": images | {"checksum": checksum}, "methods": texts, **kept})


def count(own: dict[str, Any], told: dict[str, Any], name: str) -> int:
    """Return the number of training images: of the study, or all of those that its data had, or the table's column."""
    if own["n_images"] is not None:
        return int(own["n_images"])
    if found := re.match(r"MNIST: (\d+) of 60000", told.get("data") or ""):
        return int(found[1])
    table = rows(name)
    return column(table, "n_images", int)[0] if "n_images" in table[0] else 60_000  # None is all of MNIST


def problems(table: list[dict[str, str]], sources: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for problem in column(table, "problem"):
        marks = [float(mark) for mark in dict.fromkeys(row["mark"] for row in table if row["problem"] == problem)]
        if problem in sources:
            own = dict(sources[problem])
            n_hidden = own.pop("n_hidden")
            last = [row for row in table if row["problem"] == problem][-1]
            n_var = (
                own["side"] ** 2 * n_hidden + own["side"] ** 2 + n_hidden
            )  # held to the evaluations at the last mark
            assert 0 <= n_var * float(last["mark"]) - float(last["evaluations"]) < 60 or not last["best"], problem
            what = {
                "name": problem,
                "images": own | {"pooling": None, "binarize": None, "checksum": None},
                "n_hidden": n_hidden,
            }
        else:
            function, _, n_var = problem.partition(", n = ")
            what = {"name": function, "n_var": int(n_var.replace(",", ""))}
        found[problem] = {"problem": what, "marks": marks}
    return found


def machine(known: dict[str, Any]) -> str | None:
    found = [
        one.removeprefix("Linux x86_64").strip() or "unknown" for one in (known.get("machine") or "unknown").split(", ")
    ]
    return ", ".join(found) if found != ["unknown"] else None


def searches(known: dict[str, Any], backends: tuple[str, ...]) -> list[Any]:
    told = [search[backend] for search in known["searches"] for backend in backends]
    return [study(one["study"], one["study"]["n_images"], one.get("checksum"), one.get("methods", {})) for one in told]


def settings(name: str, known: dict[str, Any]) -> Any:
    usual = json.loads(OLD["readings"])[
        "study"
    ]  # the training and reading of methods in folders that have a text alone
    # searches on functions end by their budget; the paper's 30 generations are what their readings had
    training, reading = usual["training"], usual["reading"] | {"n_gen": 30}
    if "searches" in known:
        return searches(known, ("numpy float32", "torch float32"))
    if name == "image_sets":
        sets = column(rows(name), "image_set", int)
        return [study(known["study"], known["study"]["n_images"], None, {}, image_set=number) for number in sets]
    if name.startswith("scaling"):
        table = rows(name, "runs" if name == "scaling" else "surrogates")
        return [study(known["study"], 2_000, None, {}, layers=[n]) for n in column(table, "n_hidden", int)]
    if name == "starts":
        table = rows(name, "pairs")
        found = []
        for size in column(table, "study"):
            own = [row for row in table if row["study"] == size]
            layers = {"mnist-7x7": known["study"]["layers"], "mnist-28x28": [500, 500, 2000]}[size]
            side = int(size.rpartition("x")[2])
            n_var = [layers[0] * side**2 + layers[0] + side**2, *(a * b + a + b for a, b in pairwise(layers))]
            assert column(own, "n_var", int) == n_var, size  # the hidden units of each layer
            first = {"side": side, "layers": layers, "seeds": column(own, "seed", int)}
            found.append(study(known["study"], column(own, "n_images", int)[0], None, {}, **first))
        return found
    if name == "readings_functions":
        study_of = json.loads(OLD["readings"])
        own = study_of["study"] | {"methods": list(known["methods"])}
        found = study(own, own["n_images"], study_of["checksum"], known["methods"])
        return found | {n: known[n] for n in ("seeds", "sizes", "budget")}
    if "study" in known:
        own = study(known["study"], count(known["study"], known, name), known.get("checksum"), known.get("methods", {}))
        return [own] if "explanation" in name or "predictions" in name else own
    if name in ("longer_searches", "preset_development", "preset_judged"):
        table = rows(name)
        texts = {text: method(text, training, reading) for text in column(table, "method")}
        found = {
            "problems": problems(table, SOURCES[name]),
            "methods": texts,
            "seeds": column(table, "seed", int),
        }
        if name == "longer_searches":
            assert {p: one["marks"] for p, one in found["problems"].items()} == known["problems"]
        return whole(found)
    if name in ("architectures", "preset_networks"):
        table = rows(name)
        texts = {text: method(text, training, reading) for text in column(table, "method") if text != "mlp"}
        found = {"networks": column(table, "network"), "methods": texts, "seeds": column(table, "seed", int)}
        return found | SOURCES[name] | {n: known[n] for n in ("seeds", "budget") if n in known}
    if name == "local_minima":
        texts = {text: method(text, training, reading) for text in known["methods"]}
        images = {"dataset": "mnist", "side": 7, "pooling": "mean", "binarize": "gray", "n_images": 200, "image_set": 0}
        assert known["data"].startswith("MNIST: 200 of 60000")
        assert "7 x 7 pixels, averaged" in known["data"]
        found = {n: known[n] for n in ("functions", "sizes", "sigmas", "seeds")} | {"methods": texts}
        return whole(found | {"images": images | {"checksum": None}, "rbm_seeds": known["rbms"]["seeds"]})
    if name == "linear_cost":
        table, own = rows(name, "optimizers"), known["machine"]
        names = (
            "profile",
            "date",
            "cores",
            "memory_bytes",
            "system",
            "load",
            "seconds",
            "left_out",
            "failures",
            "bench_code",
        )
        found = {n: own[n] for n in names}
        return found | {"methods": column(table, "method"), "population_size": column(table, "population_size", int)}
    return known["settings"]  # of verdicts


def nulls(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(nulls, parts)) + (value is None)


OLD = {path.parent.name: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*/provenance.json"))}
for name, text in OLD.items():
    known = json.loads(text)
    one = known if "searches" not in known else known | known["searches"][0]["numpy float32"]
    if name == "linear_cost":
        one = known | known["machine"]
        one["machine"] = one["processor"]
    versions = dict(one.get("versions") or {}) | ({"python": one["python"]} if "python" in one else {})
    new = {
        "settings": settings(name, known),
        "code": one.get("code"),
        "commit": one.get("commit"),
        "versions": versions or None,
    }
    new |= {"processor": machine(one), "sha256": known["sha256"]}
    if "searches" in known:  # whose rows in bfloat16 nothing computes again
        new["history"] = searches(known, ("torch bfloat16",))
    print(f"{name}: {nulls(new)} null")
    (HERE / name / "provenance.json").write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
