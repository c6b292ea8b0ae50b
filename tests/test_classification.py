"""What stacks are worth: each measurement beside its mathematics, and in pieces."""

import dataclasses
import io

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leamvd.networks.dbn import Training, layer_input, layer_seed, train
from leamvd.networks.rbm import RBM
from leamvd.paper import classification, likelihood, studies, units
from leamvd.paper.classification import GLOROT, FineTuning, Likelihood, Probe, RandomWeights
from leamvd.paper.datasets import Dataset, load

RANDOM = RandomWeights((49, 8, 6), "0.5", "float64")
TASKS = [
    FineTuning(iterations=3, seed=4, random=RANDOM, learning_rate=0.2),
    Probe(iterations=3, seed=4, random=RANDOM),
    Likelihood(iterations=3, seed=4, random=RANDOM, n_chains=4, n_temperatures=10),
]


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits", side=7, n_train=250, n_test=60, dtype="float64")


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(
    stack: list[RBM], V: np.ndarray, labels: np.ndarray, rates: list[float], orders: list[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray], list[float]]:
    """Backpropagation with momentum 0.9, restarted in each epoch; return weights, biases and mean losses."""
    W = [*(rbm.W.copy() for rbm in stack), np.zeros((len(stack[-1].c), 10))]
    b = [*(rbm.c.copy() for rbm in stack), np.zeros(10)]
    losses = []
    for rate, order in zip(rates, orders, strict=True):
        steps, loss = [np.zeros_like(p) for p in W + b], 0.0
        for batch in np.split(order, range(100, len(order), 100)):
            A = [V[batch]]
            for weights, biases in zip(W[:-1], b[:-1], strict=True):
                A.append(sigmoid(A[-1] @ weights + biases))
            Z = A[-1] @ W[-1] + b[-1]
            P = np.exp(Z - Z.max(axis=1, keepdims=True))
            P /= P.sum(axis=1, keepdims=True)
            loss -= np.log(P[np.arange(len(batch)), labels[batch]]).sum()
            delta = (P - np.eye(10)[labels[batch]]) / len(batch)  # of cross-entropy and softmax together
            gradients_W, gradients_b = [], []
            for i in reversed(range(len(W))):
                gradients_W.insert(0, A[i].T @ delta)
                gradients_b.insert(0, delta.sum(axis=0))
                delta = (delta @ W[i].T) * A[i] * (1 - A[i])
            for p, step, gradient in zip(W + b, steps, gradients_W + gradients_b, strict=True):
                step *= 0.9
                step -= rate * gradient
                p += step
        losses.append(loss / len(V))
    return W, b, losses


def test_fine_tuning_is_backpropagation_from_the_stack(digits: Dataset) -> None:
    stack, epochs = RANDOM.stack(seed=1), 3
    network = classification.on_top(stack, 10)
    found = [
        ([w.copy() for w in classifier.coefs_], [b.copy() for b in classifier.intercepts_], loss)
        for classifier, loss in classification.fine_tune(
            network, digits.train, digits.train_labels, epochs=epochs, learning_rate=0.3, seed=9
        )
    ]
    orders = []
    for epoch in range(1, epochs + 1):
        rng = np.random.default_rng([9, 1, epoch])
        order = np.arange(len(digits.train))
        np.random.RandomState(int(rng.integers(2**32))).shuffle(order)
        orders.append(order)
    W, b, losses = by_hand(stack, digits.train, digits.train_labels, [0.3, 0.2, 0.1], orders)
    for ours, theirs in zip(found[-1][0] + found[-1][1], W + b, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose([loss for *_, loss in found], losses, rtol=1e-9)
    for layer, before in zip(stack, RANDOM.stack(seed=1), strict=True):
        np.testing.assert_array_equal(layer.W, before.W, "the stack is left as it was")


def test_the_first_loss_is_that_of_equal_probabilities(digits: Dataset) -> None:
    network = classification.on_top(RANDOM.stack(seed=1), 10)
    few = digits.train[:80], digits.train_labels[:80]  # one mini-batch
    ((_, loss),) = classification.fine_tune(network, *few, epochs=1, learning_rate=0.1, seed=0)
    assert loss == pytest.approx(np.log(10), rel=1e-12)


def test_fine_tuning_keeps_float32(digits: Dataset) -> None:
    network = classification.on_top(RandomWeights((49, 5), "0.1", "float32").stack(seed=0), 10)
    V = digits.train.astype(np.float32)
    ((classifier, _),) = classification.fine_tune(network, V, digits.train_labels, epochs=1, learning_rate=0.1, seed=0)
    assert {p.dtype for p in classifier.coefs_ + classifier.intercepts_} == {np.dtype("float32")}


def test_random_weights_are_what_contrastive_divergence_starts_from() -> None:
    stack = RandomWeights((20, 7, 5), "0.1", "float32").stack(seed=3)
    for number, rbm in enumerate(stack, start=1):
        V = np.full((4, len(rbm.b)), 0.5, np.float32)
        first = next(train("cd", V, len(rbm.c), training=Training(), seed=layer_seed(3, number))).rbm
        for ours, theirs in zip(rbm, first, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_scales_of_random_weights() -> None:
    for scale, std in (("0.01", 0.01), (GLOROT, np.sqrt(2 / 500))):
        (rbm,) = RandomWeights((300, 200), scale, "float64").stack(seed=0)
        assert rbm.W.std() == pytest.approx(std, rel=0.02)
        assert not rbm.b.any()
        assert not rbm.c.any()


def test_a_probe_does_not_see_the_scale_of_features(digits: Dataset) -> None:
    sets = digits.train_labels, digits.test_labels
    shift, scale = np.linspace(-3, 3, 49), np.geomspace(1e-3, 1e3, 49)
    first = classification.probe(digits.train, sets[0], digits.test, sets[1])
    other = classification.probe(digits.train * scale + shift, sets[0], digits.test * scale + shift, sets[1])
    assert first[:2] == other[:2]
    varies = digits.train.std(axis=0) > 0
    X, T = (np.where(varies, V - digits.train.mean(axis=0), 0.0) for V in (digits.train, digits.test))
    std = np.where(varies, digits.train.std(axis=0), 1.0)
    reference = LogisticRegression(C=classification.PENALTY, max_iter=classification.STEPS).fit(X / std, sets[0])
    assert first.test_error == pytest.approx(1 - reference.score(T / std, sets[1]))
    assert first.train_error == pytest.approx(1 - reference.score(X / std, sets[0]))
    assert 0 < first.steps <= classification.STEPS


def test_a_probe_of_the_layers_sees_their_features(digits: Dataset) -> None:
    table = units.read_table(io.BytesIO(TASKS[1].advance(digits, []).records))
    stack = RANDOM.stack(seed=4)
    assert table["layer"].tolist() == [0, 1, 2]
    for layer, row in table.set_index("layer").iterrows():
        V, T = (layer_input(stack[: int(layer)], images) for images in (digits.train, digits.test))
        known = classification.probe(V, digits.train_labels, T, digits.test_labels)
        assert tuple(row[list(known._fields)]) == known
        assert row["features_std"] == pytest.approx(V.std(axis=0).mean(), rel=1e-12)


def test_a_likelihood_adds_chains_and_takes_the_first_layer(digits: Dataset) -> None:
    table = units.read_table(io.BytesIO(TASKS[2].advance(digits, []).records))
    assert table["chains"].tolist() == [4, 8, 12]
    base = likelihood.base_rates(digits.train)
    rbm, log_w = RANDOM.stack(seed=4)[0], []
    bits = np.random.default_rng([0, 3, 1]).random(digits.test.shape) < digits.test
    for number, (_, row) in enumerate(table.iterrows(), start=1):
        rng = np.random.default_rng([4, 2, number])
        log_w.extend(likelihood.log_weights(rbm, base, n_chains=4, n_temperatures=10, rng=rng))
        known = likelihood.estimate(rbm, bits.astype(float), np.array(log_w))
        assert tuple(row[list(known._fields)]) == known
    p = sigmoid(base)
    independent = np.where(bits, np.log(p), np.log(1 - p)).sum(axis=1).mean()
    np.testing.assert_allclose(table["independent"], independent, rtol=1e-12)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_a_measurement_in_pieces_is_the_same_to_the_bit(task: classification.StackTask, digits: Dataset) -> None:
    ticks: list[int] = []
    whole = task.advance(digits, [], tick=lambda: ticks.append(1))
    assert len(ticks) == task.iterations
    part, parts = None, 0
    while part is None or not part.done:
        part = task.advance(digits, [], part, seconds=0)
        parts += 1
        assert part.iteration == parts
    assert parts == task.iterations
    tables = [units.read_table(io.BytesIO(each.records)).drop(columns="seconds") for each in (whole, part)]
    assert tables[0].equals(tables[1])
    assert whole.done
    assert whole.arrays == part.arrays


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_a_trained_stack_comes_from_the_layers_below(task: classification.StackTask, digits: Dataset) -> None:
    below = [units._packed(rbm._asdict()) for rbm in RANDOM.stack(seed=4)]
    trained = dataclasses.replace(task, random=None).advance(digits, below)
    tables = [
        units.read_table(io.BytesIO(each.records)).drop(columns="seconds")
        for each in (trained, task.advance(digits, []))
    ]
    assert tables[0].equals(tables[1])


def test_two_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="n_classes must be an integer >= 3, got 2"):
        classification.on_top(RANDOM.stack(seed=0), 2)
    with pytest.raises(ValueError, match="dataset must have three classes or more to be classified, got 1"):
        studies.images(studies.study("classification", "quick", n_images=1))
