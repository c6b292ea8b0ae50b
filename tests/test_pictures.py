"""What stacks make of images, and what ships in the place of weights."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from small_studies import SMALL

from leamvd.campaign.store import FOLDER
from leamvd.studies import pictures, records
from leamvd.studies.study import images

STUDY = dataclasses.replace(SMALL, methods=("cd", "lea-mvd", "cma-es"), seeds=(3, 4, 8, 5))


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    records.run(STUDY, folder)
    return folder


def test_reconstructions_are_of_test_images_by_one_layer_and_by_all(output: Path) -> None:
    data = images(STUDY)
    rows = pictures.reconstructions(STUDY, output / FOLDER, data)
    names = ["original", *(f"{m}, {d}" for m in ("cd", "lea-mvd", "cma-es") for d in ("RBM 1", "all 2"))]
    assert list(rows) == names
    original = rows.pop("original")
    assert original.shape == (1, 10, 7, 7)
    assert all(V.shape == (3, 10, 7, 7) for V in rows.values()), "three of the four runs"
    labels = [data.test_labels[(data.test == V.ravel()).all(axis=1)][0] for V in original[0]]
    assert labels == list(range(10))
    V = original.reshape(10, -1)
    for run, seed in enumerate((3, 4, 8)):
        first, second = pictures.stack(STUDY, output / FOLDER, data, "lea-mvd", seed, 2)
        assert np.array_equal(rows["lea-mvd, RBM 1"][run].reshape(10, -1), first.reconstruct(V))
        top = second.hidden_given_visible(first.hidden_given_visible(V))
        both = first.visible_given_hidden(second.visible_given_hidden(top))
        assert np.array_equal(rows["lea-mvd, all 2"][run].reshape(10, -1), both)


def test_without_own_inputs_only_the_first_layer_reconstructs(tmp_path: Path) -> None:
    shared = dataclasses.replace(STUDY, inputs=("shared",), methods=("lea-mvd",), seeds=(3,))
    records.run(shared, tmp_path)
    rows = pictures.reconstructions(shared, tmp_path / FOLDER, images(shared))
    assert list(rows) == ["original", "lea-mvd, RBM 1"]
    assert rows["lea-mvd, RBM 1"].shape == (1, 10, 7, 7)


def test_filters_are_columns_of_the_weights(output: Path) -> None:
    data = images(STUDY)
    rows = pictures.filters(STUDY, output / FOLDER, data)
    W = pictures.stack(STUDY, output / FOLDER, data, "cd", 3, 1)[0].W
    assert list(rows) == ["cd", "lea-mvd", "cma-es"]
    assert rows["cd"].shape == (1, 6, 7, 7)
    for unit, picture in enumerate(rows["cd"][0]):
        assert np.allclose(picture.ravel(), W[:, unit] / abs(W).max(), rtol=1e-12)


def test_pictures_are_gray_levels(output: Path) -> None:
    data = images(STUDY)
    found = pictures.pictures(STUDY, output / FOLDER, data)
    filters, rows = (f(STUDY, output / FOLDER, data) for f in (pictures.filters, pictures.reconstructions))
    assert list(found) == [f"reconstructions/{name}" for name in rows] + [f"filters/{name}" for name in filters]
    assert {V.dtype for V in found.values()} == {np.dtype(np.uint8)}
    for name, V in filters.items():
        assert np.abs(found[f"filters/{name}"] / 127.5 - 1 - V).max() <= 0.5 / 127.5 + 1e-12
    for name, V in rows.items():
        assert np.abs(found[f"reconstructions/{name}"] / 255 - V).max() <= 0.5 / 255 + 1e-6
