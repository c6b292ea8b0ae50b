"""LEA-MVD in NumPy, by the default reading: what the library computes, on one page.

Numbers in brackets are those of the equations of the book's page "The method".
"""

from collections.abc import Callable

import numpy as np

from leamvd._support.compile import Array


def lea_mvd(
    f: Callable[[Array], Array],
    x0: Array,
    rng: np.random.Generator,
    sigma0: float = 0.1,
    n_gen: int = 30,
) -> tuple[Array, float]:
    """Return the best point and its value; `f` takes a point in each row, and returns values."""
    n = len(x0)
    size = 24
    n_elite = 4
    G = np.arange(size, 0, -1) ** 1.5  # (2)
    G /= G.sum()
    P = np.zeros(n)
    C = np.zeros(n)
    beta1 = 1.0
    beta2 = 0.9
    count = 0
    X = np.empty((0, n))
    F = np.empty(0)
    new = x0 + sigma0 * rng.standard_normal((size, n))  # (1), start (B)
    new[0] = x0
    for t in range(n_gen):
        # evaluate the new points, and sort the population
        X = np.concatenate([X[:n_elite], new])
        F = np.concatenate([F[:n_elite], f(new)])
        order = np.argsort(F, kind="stable")
        X = X[order]
        F = F[order]
        # adapt the step sizes, (15) and (16)
        if t == 0:
            x_best = X[0]
            f_best = F[0]
        elif F[0] != f_best:
            count = 0
            beta1 = min(3, 1.1 * beta1) if beta1 > 1 else 1.4 * beta1
            beta2 = min(1, beta2 + 0.2)
        else:
            count += 1
            beta1 = 0.8 * beta1 if beta1 < 1 else 0.5 * beta1
            beta2 = max(0, beta2 - 0.1)
        # fit the normal model, (4) and (5)
        mean = G @ X
        std = np.sqrt(G @ (X - mean) ** 2)
        # update the two directions, (6) to (10)
        P = 0.1 * (X[0] - x_best) + 0.9 * P
        x_best = X[0]
        f_best = F[0]
        ranks = rng.permutation(np.arange(1, size))[:4]
        U = (X[0] - X[ranks]).T
        U_P = U - np.outer(P, P @ U) / (P @ P) if P.any() else U
        C_hat = np.linalg.svd(U_P, full_matrices=False)[0][:, 0]
        C = 0.1 * np.sign((U.T @ C_hat).sum()) * C_hat + 0.9 * C
        mu_ani = np.mean((X[1:] - X[0]) @ C)
        # the reset, (17), and the end, (18)
        if count == 10:
            std = np.ones(n)
            count = 0
            beta1 = 0.1
        if np.linalg.norm(std) < 1e-4 * np.sqrt(n):
            break
        # sample all but the elites anew, (12) to (14)
        v = beta2 * P + (1 - beta2) * abs(mu_ani) * C
        z = rng.standard_normal((size - n_elite, n))
        changed = rng.random(z.shape) < 0.02
        factor = np.where(changed, rng.uniform(0.5, 1.5, z.shape), 1)
        new = factor * (mean + std * z + beta1 * v)
    return X[0], F[0]
