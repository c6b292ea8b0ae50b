"""What stacks are worth: each measurement against its mathematics."""

import dataclasses
import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from leamvd.campaign.jobs import Result, packed
from leamvd.campaign.tables import read_table
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments import stacks
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.stacks import (
    GLOROT,
    AnnealedImportanceSampling,
    FineTune,
    Mistakes,
    Probe,
    RandomWeights,
)
from leamvd.networks import likelihood
from leamvd.networks.dbn import Training, layer_input, layer_seed, train
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers.reading import Reading

RANDOM = RandomWeights((49, 8, 6), "0.5", "float64")
GIVEN: dict[str, Any] = {"images": Images("0", "digits"), "seed": 4, "random": RANDOM}


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits", side=7, n_train=250, n_test=60, dtype="float64")


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(
    stack: list[RBMParameters], V: np.ndarray, labels: np.ndarray, rates: list[float], orders: list[np.ndarray]
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
    epochs, rng = 3, np.random.default_rng(0)
    stack = [rbm._replace(c=rng.normal(0, 1, len(rbm.c))) for rbm in RANDOM.stack(seed=1)]
    network = stacks.on_top(stack, 10)
    found = [
        ([w.copy() for w in classifier.coefs_], [b.copy() for b in classifier.intercepts_], loss)
        for classifier, loss in stacks.fine_tune(
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
    network = stacks.on_top(RANDOM.stack(seed=1), 10)
    few = digits.train[:80], digits.train_labels[:80]  # one mini-batch
    ((_, loss),) = stacks.fine_tune(network, *few, epochs=1, learning_rate=0.1, seed=0)
    assert loss == pytest.approx(np.log(10), rel=1e-12)


def test_fine_tuning_keeps_float32(digits: Dataset) -> None:
    network = stacks.on_top(RandomWeights((49, 5), "0.1", "float32").stack(seed=0), 10)
    V = digits.train.astype(np.float32)
    ((classifier, _),) = stacks.fine_tune(network, V, digits.train_labels, epochs=1, learning_rate=0.1, seed=0)
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
    first = stacks.probe(digits.train, sets[0], digits.test, sets[1])
    other = stacks.probe(digits.train * scale + shift, sets[0], digits.test * scale + shift, sets[1])
    assert first[:2] == other[:2]
    varies = digits.train.std(axis=0) > 0
    X, T = (np.where(varies, V - digits.train.mean(axis=0), 0.0) for V in (digits.train, digits.test))
    std = np.where(varies, digits.train.std(axis=0), 1.0)
    reference = LogisticRegression(C=stacks.PENALTY, max_iter=stacks.STEPS).fit(X / std, sets[0])
    assert first.test_error == pytest.approx(1 - reference.score(T / std, sets[1]))
    assert first.train_error == pytest.approx(1 - reference.score(X / std, sets[0]))
    assert 0 < first.steps <= stacks.STEPS


def test_a_probe_of_the_layers_sees_their_features(digits: Dataset) -> None:
    table = read_table(io.BytesIO(Probe(**GIVEN).advance(digits, []).rows))
    stack = RANDOM.stack(seed=4)
    assert table["layer"].tolist() == [0, 1, 2]
    for layer, row in table.set_index("layer").iterrows():
        V, T = (layer_input(stack[: int(layer)], images) for images in (digits.train, digits.test))
        known = stacks.probe(V, digits.train_labels, T, digits.test_labels)
        assert tuple(row[list(known._fields)]) == known
        assert row["features_std"] == pytest.approx(V.std(axis=0).mean(), rel=1e-12)


def test_a_likelihood_adds_chains_and_takes_the_first_layer(digits: Dataset) -> None:
    job = AnnealedImportanceSampling(**GIVEN, n_chains=20, n_temperatures=10)
    table = read_table(io.BytesIO(job.advance(digits, []).rows))
    assert table["chains"].tolist() == [4, 8, 12, 16, 20]
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


def test_a_network_is_scored_by_test_images_after_each_epoch(digits: Dataset) -> None:
    table = read_table(io.BytesIO(FineTune(**GIVEN, epochs=3, learning_rate=0.2).advance(digits, []).rows))
    network, rows = stacks.on_top(RANDOM.stack(seed=4), 10), []
    for classifier, loss in stacks.fine_tune(
        network, digits.train, digits.train_labels, epochs=3, learning_rate=0.2, seed=4
    ):
        rows.append((float(np.mean(classifier.predict(digits.test) != digits.test_labels)), loss))
    assert list(table[["test_error", "loss"]].itertuples(index=False, name=None)) == rows


@pytest.mark.parametrize(
    "job",
    [Probe(**GIVEN), FineTune(**GIVEN, epochs=2, learning_rate=0.2),
     AnnealedImportanceSampling(**GIVEN, n_chains=10, n_temperatures=5)],
    ids=lambda job: type(job).__name__,
)  # fmt: skip
def test_a_trained_stack_is_measured_as_random_weights_are(job: stacks.StackJob, digits: Dataset) -> None:
    layers = tuple(
        TrainLayer(images=job.images, trainer="cd", layer=i, n_hidden=n, seed=4, training=Training(), reading=Reading())
        for i, n in enumerate(RANDOM.sizes[1:], start=1)
    )
    needs = [Result(b"", packed(layer._asdict()), 1, True) for layer in RANDOM.stack(seed=4)]
    trained = dataclasses.replace(job, random=None, stack=layers)
    assert trained.needs == layers
    assert trained.iterations == job.iterations
    tables = [
        read_table(io.BytesIO(each.rows)).drop(columns="seconds")
        for each in (trained.advance(digits, needs), job.advance(digits, []))
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_mistakes_are_the_test_images_that_the_last_epoch_gets_wrong(digits: Dataset) -> None:
    tuned = FineTune(**GIVEN, epochs=2, learning_rate=0.2)
    found = tuned.advance(digits, [])
    table = read_table(io.BytesIO(Mistakes(tuned=tuned).advance(digits, [found]).rows))
    *_, (classifier, _) = stacks.fine_tune(
        stacks.on_top(RANDOM.stack(seed=4), 10), digits.train, digits.train_labels, epochs=2, learning_rate=0.2, seed=4
    )
    named = classifier.predict(digits.test)
    wrong = named != digits.test_labels
    assert table["image"].tolist() == np.flatnonzero(wrong).tolist()
    assert table["named"].tolist() == named[wrong].tolist()
    assert len(table) / len(digits.test) == read_table(io.BytesIO(found.rows))["test_error"].iloc[-1]
