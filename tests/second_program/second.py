"""LEA-MVD and its experiment at 7x7 pixels, written from paper.tex and items.md alone.

    OMP_NUM_THREADS=1 python -I second.py --seeds 0-29 --workers 1 --output errors.csv

What the paper leaves open and is decided here is listed in questions.md (Q1, Q2, ...).
"""
import argparse
import csv
import gzip
import multiprocessing
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

HERE = Path(__file__).resolve().parent

# The two readings. Items where both agree (R1-R4, R6-R10, R12, R13, R15, R17 share, R18, R19)
# are written into the code.
READINGS = {
    #                R5                   R11             R14                 R16       R17
    "default": dict(toward_best=True, x2_twice=False, reevaluate=False, keep_x0=True,
                    factor_per_column=False),
    "printed": dict(toward_best=False, x2_twice=True, reevaluate=True, keep_x0=False,
                    factor_per_column=True),
}
POPULATION_SIZE = 24  # lambda (R2)
N_ELITE = 4  # n_elite
N_DRAWN = 4  # |ir| (R7)
STAGNATION = 10  # generations without a new best value, until Sigma is reset


def selection_weights(size):
    """Eq. fractour: G by rank, the best first, with exponent 1.5."""
    g = np.arange(size, 0, -1.0) ** 1.5
    return g / g.sum()


def main_direction(U, P, iterations=200, tolerance=1e-10):
    """C-hat: unit vector of maximum projection of the rows of U, orthogonal to P (power method).

    The rows point toward the best individual; so does the result (R6). With U = 0 it is 0.
    """
    length = np.linalg.norm(P)
    p = P / length if length > 0 else np.zeros_like(P)
    c = U.sum(axis=0)  # Q11: the start of the power method
    for k in range(iterations + 1):
        if k > 0:
            c = U.T @ (U @ c)
        c = c - (p @ c) * p  # "removing the projection to P at each iteration"
        length = np.linalg.norm(c)
        if length == 0.0:
            return np.zeros_like(P)
        c = c / length
        if k > 0 and np.linalg.norm(c - before) < tolerance:
            break
        before = c
    return -c if (U @ c).sum() < 0 else c


def lea_mvd(f, x0, rng, reading="default", n_gen=50, sigma0=0.1, history=None):
    """Minimize f (a vector's value) by LEA-MVD, starting at x0; return the best x and its value.

    The names are the paper's. `history`, a list, receives a tuple for each generation.
    """
    r = READINGS[reading]
    lam, n = POPULATION_SIZE, len(x0)
    G = selection_weights(lam)
    sigma_min = 1e-4 * np.sqrt(n)  # R1: scaled

    t = 1
    X = x0 + sigma0 * rng.standard_normal((lam, n))  # initialization (B); no limits (R15, Q1)
    if r["keep_x0"]:
        X[0] = x0  # R16: in place of one sample
    F = np.array([f(x) for x in X])
    ix = np.argsort(F, kind="stable")  # best (smallest) first; ties as they came (R18)
    x_best = x_best_before = X[ix[0]]
    f_best = F[ix[0]]
    count, beta1, beta2 = 0, 1.0, 0.9
    Sigma = np.full(n, sigma_min + 1.0)
    P = np.zeros(n)  # P^0, Q6
    C = np.zeros(n)  # C_ani^0, R8: zero

    # The listing continues while the norm is *less* than sigma_min, which would end it at once.
    while t < n_gen and np.linalg.norm(Sigma) >= sigma_min:
        # Means and standard deviations, eqs. mean and sigma.
        mu = G @ X[ix]
        Sigma = np.sqrt(G @ (X[ix] - mu) ** 2)

        # Main direction estimators.
        P = 0.1 * (x_best - x_best_before) + 0.9 * P
        ir = ix[1 + rng.choice(lam - 1, size=N_DRAWN, replace=False)]
        C = 0.1 * main_direction(X[ix[0]] - X[ir], P) + 0.9 * C
        projections = (X[ix[1:]] - X[ix[0]]) @ C  # C is not of unit length (R9: literal)
        if r["x2_twice"]:  # R11, Q13: x_2, x_2, x_3, ..., x_lambda
            projections = np.append(projections, projections[0])
        mu_ani = projections.mean()  # sigma_ani is used nowhere (R10: mean)

        if count == STAGNATION:
            Sigma, count, beta1 = np.ones(n), 0, 0.1

        # Repopulate: the elites as they are, and lambda - n_elite new individuals.
        step = -mu_ani if r["toward_best"] else mu_ani  # R5
        v = beta2 * P + (1 - beta2) * step * C  # eq. searchdir
        new = Sigma * rng.standard_normal((lam - N_ELITE, n)) + mu + beta1 * v  # eq. sampling
        shape = (1, n) if r["factor_per_column"] else new.shape  # R17
        changed = rng.random(shape) < 0.02
        new *= np.where(changed, 1 + rng.uniform(-0.5, 0.5, shape), 1.0)
        elite = ix[:N_ELITE]
        F_elite = np.array([f(x) for x in X[elite]]) if r["reevaluate"] else F[elite]  # R14
        X = np.concatenate([X[elite], new])
        t += 1
        F = np.concatenate([F_elite, [f(x) for x in new]])
        ix = np.argsort(F, kind="stable")
        x_best_before, x_best = x_best, X[ix[0]]
        f_best_before, f_best = f_best, F[ix[0]]
        if history is not None:
            history.append((t, f_best, beta1, beta2, mu_ani, np.linalg.norm(Sigma)))

        # Step sizes.
        if f_best != f_best_before:
            count = 0
            beta2 = min(1.0, 0.2 + beta2)
            beta1 = min(3.0, 1.1 * beta1) if beta1 > 1 else 1.4 * beta1  # R12
        else:
            count += 1
            beta2 = max(0.0, beta2 - 0.1)
            beta1 = 0.8 * beta1 if beta1 < 1 else 0.5 * beta1
    return x_best, float(f_best)


def sigmoid(a):
    """The logistic function, in place."""
    np.negative(a, out=a)
    with np.errstate(over="ignore"):
        np.exp(a, out=a)
    a += 1
    return np.reciprocal(a, out=a)


def unpack(x, n_visible, n_hidden):
    """The weights, visible biases and hidden biases of a vector, in float32."""
    x = np.asarray(x, dtype=np.float32)
    k = n_visible * n_hidden
    return x[:k].reshape(n_visible, n_hidden), x[k:k + n_visible], x[k + n_visible:]


def features(x, data, n_hidden):
    """P(h=1|v) of all images (E6)."""
    W, _, c = unpack(x, data.shape[1], n_hidden)
    return sigmoid(data @ W + c)


def reconstruction_error(x, data, n_hidden, block=1000):
    """The mean-field error: the sum over images and pixels of (v - v')^2 (E2)."""
    W, b, c = unpack(x, data.shape[1], n_hidden)
    WT = np.ascontiguousarray(W.T)
    total = 0.0
    for start in range(0, len(data), block):  # blocks stay in the cache
        V = data[start:start + block]
        H = V @ W
        H += c
        R = sigmoid(H) @ WT
        R += b
        R = sigmoid(R)
        R -= V
        total += float(np.vdot(R, R))
    return total


def contrastive_divergence(data, n_hidden, epochs, rng, batch_size=100, learning_rate=0.1,
                           momentum=0.5, final_momentum=0.9, momentum_epochs=5,
                           weight_decay=0.0002, weight_scale=0.1):
    """Train an RBM by CD-1 from random weights, by E8; return its vector of parameters."""
    n_images, n_visible = data.shape
    W = (weight_scale * rng.standard_normal((n_visible, n_hidden))).astype(np.float32)
    b, c = np.zeros(n_visible, np.float32), np.zeros(n_hidden, np.float32)
    dW, db, dc = np.zeros_like(W), np.zeros_like(b), np.zeros_like(c)
    for epoch in range(epochs):
        m = np.float32(momentum if epoch < momentum_epochs else final_momentum)
        order = rng.permutation(n_images)
        for start in range(0, n_images, batch_size):
            v0 = data[order[start:start + batch_size]]
            h0 = sigmoid(v0 @ W + c)
            bits = (rng.random(h0.shape, dtype=np.float32) < h0).astype(np.float32)
            v1 = sigmoid(bits @ W.T + b)  # probabilities, as are h1 and the statistics (Q27)
            h1 = sigmoid(v1 @ W + c)
            rate = np.float32(learning_rate / len(v0))
            decay = np.float32(learning_rate * weight_decay)
            dW = m * dW + rate * (v0.T @ h0 - v1.T @ h1) - decay * W
            db = m * db + rate * (v0 - v1).sum(axis=0)
            dc = m * dc + rate * (h0 - h1).sum(axis=0)
            W, b, c = W + dW, b + db, c + dc
    return np.concatenate([W.ravel(), b, c])


LAYERS = (30, 30, 120)
ITERATIONS = 50
COLUMNS = ("inputs", "method", "layer", "seed", "error", "start")
ROWS_PER_SEED = 3 * 3 + 2 * 3
STREAMS = ("cd", "start", "own default", "own printed", "shared default")


def load_images():
    """The 10,000 images at 7x7 pixels (E4: means of 4x4 blocks), gray levels in [0, 1]."""
    with gzip.open(HERE / "mnist" / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 7, 4, 7, 4)
    places = np.loadtxt(HERE / "images.txt", dtype=int)
    return (pixels[places].mean(axis=(2, 4)) / 255).reshape(-1, 49).astype(np.float32)


def stream(seed, layer, name):
    """The random generator of one training."""
    return np.random.default_rng([seed, layer, STREAMS.index(name)])


def search_layer(data, layer, seed, inputs, reading, iterations):
    """Train an RBM by LEA-MVD from one epoch of CD: its vector, its error, the start's error."""
    n_hidden = LAYERS[layer]
    start = contrastive_divergence(data, n_hidden, 1, stream(seed, layer, "start"))
    x, error = lea_mvd(lambda x: reconstruction_error(x, data, n_hidden), start.astype(float),
                       stream(seed, layer, f"{inputs} {reading}"), reading, iterations)
    return x, error, reconstruction_error(start, data, n_hidden)


def run_seed(seed, images, iterations=ITERATIONS):
    """All rows of one seed."""
    rows = []
    shared = []  # the inputs of each layer, by CD's stack
    data = images
    for layer, n_hidden in enumerate(LAYERS):
        shared.append(data)
        x = contrastive_divergence(data, n_hidden, iterations, stream(seed, layer, "cd"))
        error = reconstruction_error(x, data, n_hidden)
        rows += [(inputs, "cd", layer + 1, seed, error, "") for inputs in ("own", "shared")]
        data = features(x, data, n_hidden)
    for reading in READINGS:
        data = images
        for layer, n_hidden in enumerate(LAYERS):
            x, error, start = search_layer(data, layer, seed, "own", reading, iterations)
            rows.append(("own", reading, layer + 1, seed, error, start))
            if reading == "default":
                if layer > 0:  # the first layer has the same inputs: the same run
                    _, error, start = search_layer(shared[layer], layer, seed, "shared",
                                                   reading, iterations)
                rows.append(("shared", reading, layer + 1, seed, error, start))
            data = features(x, data, n_hidden)
    return sorted(rows, key=lambda row: row[:3])


def finished_seeds(path):
    """The seeds in the file; whole ones only are ever written."""
    if not path.exists():
        return set()
    with open(path, newline="") as file:
        found = [int(row["seed"]) for row in csv.DictReader(file)]
    for seed in set(found):
        if found.count(seed) != ROWS_PER_SEED:
            sys.exit(f"{path}: seed {seed} has {found.count(seed)} rows; remove them first")
    return set(found)


def parse_seeds(text):
    """'0-29' or '0,3,5-7' as a list."""
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def job(seed):
    """One seed in a worker process."""
    begin = time.perf_counter()
    return seed, run_seed(seed, load_images()), time.perf_counter() - begin


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=parse_seeds, default="0-29")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("errors.csv"))
    args = parser.parse_args()
    done = finished_seeds(args.output)
    seeds = [seed for seed in args.seeds if seed not in done]
    with multiprocessing.get_context("spawn").Pool(args.workers) as pool:
        for seed, rows, seconds in pool.imap_unordered(job, seeds):
            new = not args.output.exists()
            with open(args.output, "a", newline="") as file:
                csv.writer(file).writerows(([COLUMNS] if new else []) + rows)
            print(f"seed {seed}: {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
