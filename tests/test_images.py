import gzip
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy import stats

from idx_files import (
    NAMES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    fake_files,
    idx,
    write,
)
from leamvd_paper.data import images as data_images
from leamvd_paper.data.images import known, load, resize
from leamvd_paper.data.mnist import UNPACKED_SHA256, DataError, fetch_mnist, idx_file

# ---- resizing


def area_means(images: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """Split old and new pixels alike into the squares of a common grid, and average those: obvious
    and slow.
    """
    old = images.shape[1]
    fine = images.repeat(side, axis=1).repeat(side, axis=2)
    return fine.reshape(-1, side, old, side, old).mean(axis=(2, 4)).reshape(-1, side**2)


@pytest.mark.parametrize(("old", "side"), [(8, 7), (28, 7), (5, 3), (9, 4), (6, 5), (4, 1), (3, 3)])
def test_smaller_images_are_means_over_areas(old: int, side: int) -> None:
    images = np.random.default_rng(old).random((3, old, old))
    np.testing.assert_allclose(
        resize(images.reshape(3, -1), side), area_means(images, side), rtol=1e-14
    )


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_resizing_keeps_its_input_and_the_range(old: int, side: int, seed: int) -> None:
    rows = np.random.default_rng(seed).random((2, old**2))
    before = rows.copy()
    new = resize(rows, side)
    assert new.shape == (2, side**2)
    assert not np.shares_memory(new, rows)
    assert rows.min() <= new.min() <= new.max() <= rows.max()
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize(
    ("old", "side", "picked"),
    [(28, 7, 2 + 4 * np.arange(7)), (9, 3, np.array([1, 4, 7])), (5, 2, np.array([1, 3]))],
)
def test_a_smaller_image_can_be_the_centers_of_blocks(
    old: int, side: int, picked: NDArray[np.intp]
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, old, old))
    expected = images[:, picked][:, :, picked]
    np.testing.assert_array_equal(
        resize(images.reshape(3, -1), side, "center").reshape(3, side, side), expected
    )


@pytest.mark.parametrize(("old", "side"), [(8, 28), (3, 5), (1, 4)])
def test_larger_images_are_interpolated_between_pixel_centers(old: int, side: int) -> None:
    image = np.random.default_rng(old).random((old, old))
    centers, new_centers = (np.arange(old) + 0.5) / old, (np.arange(side) + 0.5) / side
    rows = np.array([np.interp(new_centers, centers, row) for row in image])
    expected = np.array([np.interp(new_centers, centers, column) for column in rows.T]).T
    np.testing.assert_allclose(resize(image.reshape(1, -1), side)[0], expected.ravel(), rtol=1e-12)


@pytest.mark.parametrize(
    "bad",
    [np.zeros((2, 3)), np.zeros((0, 4)), np.zeros((4, 0)), np.zeros(4), np.full((1, 4), np.nan)],
)
def test_resize_refuses_what_is_not_square_images(bad: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="images must"):
        resize(bad, 1)


# ---- digits


def test_digits_split_is_fixed_complete_and_stratified() -> None:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    data = load("digits", side=8, seed=5)
    assert (data.side, data.train.dtype) == (8, np.float32)
    assert data.checksum == "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
    both = np.column_stack(
        [np.vstack([data.train, data.test]) * 16, np.r_[data.train_labels, data.test_labels]]
    )
    assert sorted(map(tuple, both)) == sorted(map(tuple, np.column_stack([pixels, labels])))
    assert np.abs(np.bincount(data.test_labels) - np.bincount(labels) / 5).max() < 1
    np.testing.assert_array_equal(data.train, load("digits", side=8, seed=6).train)
    # not sorted by class: mini-batches need them mixed
    assert (np.diff(data.train_labels) < 0).any()


# ---- a folder of IDX files


def listed(folder: Path, names: list[str]) -> str:
    """Return the SHA-256 of what sha256sum prints for these files."""
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize(("zipped", "sign"), [(True, "-"), (True, "."), (False, "-"), (False, ".")])
def test_a_folder_gives_its_pixels_and_labels(tmp_path: Path, zipped: bool, sign: str) -> None:
    packed = fake_files(side=9)
    plain = {name.removesuffix(".gz"): gzip.decompress(content) for name, content in packed.items()}
    files = {
        n.replace("-idx", f"{sign}idx"): content
        for n, content in (packed if zipped else plain).items()
    }
    folder = write(tmp_path / "fashion", files)
    data = load(folder, side=9, dtype="float64")
    for images, labels, part in (
        (data.train, data.train_labels, "train"),
        (data.test, data.test_labels, "t10k"),
    ):
        pixels = np.frombuffer(plain[f"{part}-images-idx3-ubyte"][16:], np.uint8).reshape(-1, 81)
        np.testing.assert_array_equal(images, pixels / 255)
        np.testing.assert_array_equal(labels, list(plain[f"{part}-labels-idx1-ubyte"][8:]))
        assert labels.dtype == np.int64
    small = load(str(folder), side=4)
    np.testing.assert_allclose(small.train, resize(data.train, 4), rtol=1e-6)
    assert data.checksum == small.checksum == listed(folder, sorted(files))


def test_resizing_in_blocks_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "few", fake_files())
    whole = load(folder, side=7)
    monkeypatch.setattr(data_images, "_BLOCK", 7)
    np.testing.assert_array_equal(load(folder, side=7).train, whole.train)


# ---- images by class, .npz files


def encoded(image: Image.Image, extension: str = ".png") -> bytes:
    file = io.BytesIO()
    image.save(file, Image.registered_extensions()[extension])
    return file.getvalue()


def test_images_by_class_are_read_in_the_order_of_torchvision(tmp_path: Path) -> None:
    names = [
        "10/B.PNG",
        "10/a.png",
        "10/z/1.png",
        "10/z-/0.png",
        "10/z/y/0.png",
        "10-/c.png",
        "2/x.png",
        "a/0.png",
    ]
    levels = np.arange(8 * 9, dtype=np.uint8).reshape(8, 3, 3)
    files = {f"train/{n}": encoded(Image.fromarray(x)) for n, x in zip(names, levels, strict=True)}
    files |= {"test/a/9.png": files["train/a/0.png"], "test/10-/9.png": files["train/2/x.png"]}
    ignored = [
        "train/a/.0.png",
        "train/a/.b/0.png",
        "train/.c/0.png",
        "train/a/0.txt",
        "train/0.png",
    ]
    folder = write(
        tmp_path / ".hidden", dict(reversed(files.items())) | dict.fromkeys(ignored, b"")
    )
    data = load(folder, side=3, dtype="float64")
    np.testing.assert_array_equal(data.train, levels.reshape(8, 9) / 255)
    np.testing.assert_array_equal(data.test, levels[[6, 7]].reshape(2, 9) / 255)
    assert (data.train_labels.tolist(), data.test_labels.tolist()) == (
        [0, 0, 0, 0, 0, 1, 2, 3],
        [1, 3],
    )
    assert data.class_names == ("10", "10-", "2", "a")
    assert known(folder) == (data.checksum, 8)
    assert data.checksum == listed(folder, sorted(files))


def test_colors_become_gray_and_transparent_pixels_white(tmp_path: Path) -> None:
    color = Image.new("RGB", (1, 1), (255, 128, 0))  # 0.299 * 255 + 0.587 * 128 = 151.4
    # a fifth of black
    images = [color, color.quantize(), color.convert("CMYK"), Image.new("LA", (1, 1), (0, 51))]
    files = {
        f"{part}/a/{i}.tif": encoded(one, ".tif")
        for part in ("train", "test")
        for i, one in enumerate(images)
    }
    levels = load(write(tmp_path, files), side=1, dtype="float64").train.ravel() * 255
    np.testing.assert_allclose(levels, [151, 151, 151, 204])


@pytest.mark.parametrize("extension", data_images.EXTENSIONS)
@pytest.mark.filterwarnings("ignore")  # of Pillow, about damaged TIFF files
def test_every_extension_is_read_and_a_truncated_file_is_named(
    tmp_path: Path, extension: str
) -> None:
    name, content = f"a/0{extension}", encoded(Image.new("RGB", (8, 8), (90, 90, 90)), extension)
    folder = write(tmp_path, {f"train/{name}": content, f"test/{name}": content})
    np.testing.assert_allclose(load(folder, side=8).train, 90 / 255, atol=1.01 / 255)
    with pytest.raises(DataError, match=f"test.a.0{extension} cannot be used"):
        load(write(folder, {f"test/{name}": content[: len(content) // 2]}), side=8)


def pages(name: str) -> bytes:
    file, (first, *more) = (
        io.BytesIO(),
        [Image.new("RGB", (2, 2), (level,) * 3) for level in (0, 255)],
    )
    first.save(
        file, Image.registered_extensions()[Path(name).suffix], save_all=True, append_images=more
    )
    return file.getvalue()


@pytest.mark.parametrize("extension", [".jpg", ".png", ".webp", ".tif"])
@pytest.mark.parametrize(("orientation", "turned"), [(3, 2), (6, 3), (8, 1)])
def test_images_are_turned_as_they_say(
    tmp_path: Path, extension: str, orientation: int, turned: int
) -> None:
    levels = np.kron(np.uint8([[0, 255], [90, 160]]), np.ones((8, 8), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    given: dict[str, Any] = {"lossless": True} if extension == ".webp" else {}
    file, image = io.BytesIO(), Image.fromarray(np.dstack([levels] * 3))
    image.save(file, Image.registered_extensions()[extension], exif=exif, **given)
    data = load(
        write(tmp_path, {f"{part}/a/0{extension}": file.getvalue() for part in ("train", "test")}),
        side=16,
    )
    np.testing.assert_allclose(
        data.train.reshape(16, 16), np.rot90(levels, turned) / 255, atol=6 / 255
    )


def test_bits_in_an_npz_file_are_black_and_white(tmp_path: Path) -> None:
    path = write(tmp_path, npz(x_train=X[:5] > 99, x_test=X[5:] > 99)) / "own.npz"
    data = load(path, side=4)
    np.testing.assert_array_equal(data.train, (X[:5] > 99).reshape(5, -1))
    for how in ("threshold", "bernoulli"):
        np.testing.assert_array_equal(load(path, side=4, binarize=how).train, data.train)
    np.testing.assert_allclose(load(path, side=2, dtype="float64").test, resize(data.test, 2))


RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 256, (9, 4, 4), np.uint8), RNG.integers(0, 3, 9, np.uint8)
ARRAYS = {"x_train": X[:5], "y_train": Y[:5], "x_test": X[5:], "y_test": Y[5:]}


def npz(**changes: NDArray[Any]) -> dict[str, bytes]:
    np.savez_compressed(file := io.BytesIO(), **ARRAYS | changes)
    return {"own.npz": file.getvalue()}


@pytest.mark.parametrize(
    ("how", "side"), [("gray", 4), ("gray", 3), ("threshold", 4), ("bernoulli", 3)]
)
def test_an_npz_file_has_the_images_of_the_same_idx_files(
    tmp_path: Path, how: str, side: int
) -> None:
    folder = write(tmp_path, {n: idx(a) for n, a in zip(NAMES, ARRAYS.values(), strict=True)})
    expected = load(folder, side=side, binarize=how, n_train=4)
    floats = {
        name: a / 255 if name[0] == "x" else a.reshape(-1, 1).astype(int)
        for name, a in ARRAYS.items()
    }
    for changes in ({"more": Y}, floats):
        path = write(tmp_path, npz(**changes)) / "own.npz"
        data = load(path, side=side, binarize=how, n_train=4)
        for one, other in zip(data[:4], expected[:4], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
            assert one.dtype == other.dtype
        assert known(path) == (data.checksum, 5) == (listed(tmp_path, [path.name]), 5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_of_any_precision_may_reach_both_ends(tmp_path: Path, dtype: str) -> None:
    levels = np.linspace(0, 1, 9 * 16).reshape(9, 4, 4).astype(dtype)
    arrays = npz(x_train=levels[:5], x_test=levels[5:], y_train=Y[:5].astype(np.int8))
    data = load(write(tmp_path, arrays) / "own.npz", side=4, dtype="float64")
    np.testing.assert_array_equal(np.vstack([data.train, data.test]), levels.reshape(9, 16))
    nothing = np.full((4, 4, 4), np.nan, dtype)
    with pytest.raises(DataError, match="x_test must"):
        load(write(tmp_path, npz(x_train=levels[:5], x_test=nothing)) / "own.npz", side=4)


def test_bytes_of_one_part_alone_may_be_zeros_and_ones(tmp_path: Path) -> None:
    dark = np.eye(4, dtype=np.uint8)[None].repeat(4, axis=0)
    data = load(write(tmp_path, npz(x_test=dark)) / "own.npz", side=4, dtype="float64")
    np.testing.assert_array_equal(data.test, dark.reshape(4, 16) / 255)


def test_labels_may_be_as_large_as_they_are_kept(tmp_path: Path) -> None:
    top = np.array([0, 1, 2, 3, 2**63 - 1], np.uint64)
    data = load(write(tmp_path, npz(y_train=top)) / "own.npz", side=4)
    assert data.train_labels.tolist() == top.tolist()
    with pytest.raises(DataError, match="y_train must be 5"):
        load(write(tmp_path, npz(y_train=Y[:5] > 1)) / "own.npz", side=4)


def test_extensions_are_those_of_torchvision() -> None:
    known_there = {"jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"}
    assert {*data_images.EXTENSIONS} == {f".{name}" for name in known_there}


GRAY = encoded(Image.new("L", (2, 2)))
GOOD = dict.fromkeys(["train/a/0.png", "train/b/0.png", "test/a/0.png"], GRAY)
IDX, FIVE = fake_files(side=4), np.zeros((5, 4, 4), np.uint8)
OBLONG = ((TRAIN_IMAGES, 30), (TEST_IMAGES, 20))
DAMAGED = [
    (TRAIN_IMAGES, gzip.compress(idx(FIVE), mtime=0)[:-9], "damaged gzip"),  # EOFError
    (TRAIN_IMAGES, b"\x1f\x8b" + bytes(30), "damaged gzip"),  # gzip.BadGzipFile
    # zlib.error
    (TRAIN_IMAGES, gzip.compress(idx(FIVE), mtime=0)[:10] + bytes([255] * 30), "damaged gzip"),
    (TEST_LABELS, b"<html>not found</html>", "not an IDX file of unsigned bytes with 1 axes"),
    (TRAIN_IMAGES, idx(FIVE[0]), "not an IDX file of unsigned bytes with 3 axes"),
    (TRAIN_IMAGES, b"\0\0\x0d\x03" + idx(FIVE)[4:], "not an IDX file"),
    (TRAIN_IMAGES, idx(FIVE)[:10], "not an IDX file"),
    (TRAIN_IMAGES, idx(FIVE)[:-1], "79 values where its header announces 5 x 4 x 4"),
    (TRAIN_IMAGES, idx(FIVE) + b"\0", "81 values where its header announces 5 x 4 x 4"),
    (TRAIN_IMAGES, idx(FIVE[:0]), "0 values where its header announces 0 x 4 x 4"),
]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        *(
            (IDX | {name: new}, rf"{name} .*{trouble}.*: copy or download the file again")
            for name, new, trouble in DAMAGED
        ),
        (
            {name: IDX[name] for name in NAMES[:3]},
            "neither t10k-labels-idx1-ubyte, gzipped or not, nor",
        ),
        (IDX | {TEST_LABELS: idx(np.zeros(19, np.uint8))}, "20 images but 19 labels in its t10k"),
        (
            IDX | {TRAIN_IMAGES: idx(np.zeros((30, 5, 5), np.uint8))},
            "one size, got 5 x 5 and 4 x 4 pixels",
        ),
        (
            IDX | {n: idx(np.zeros((m, 4, 5), np.uint8)) for n, m in OBLONG},
            "square .* got 4 x 5 and 4 x 5 pixels",
        ),
        (
            GOOD | {"test/a/1.png": encoded(Image.new("L", (3, 3)))},
            "test.a.1.png .* 2 x 2, got 3 x 3",
        ),
        (
            GOOD | {"train/a/0.png": encoded(Image.new("L", (3, 2)))},
            "train.a.0.png .* square, got 3 x 2",
        ),
        (GOOD | {"train/b/0.png": encoded(Image.new("I;16", (2, 2)))}, "train.b.0.png .* 8 bits"),
        (
            GOOD | {"train/b/0.tif": encoded(Image.new("F", (2, 2)), ".tif")},
            "train.b.0.tif .* 8 bits .* mode F",
        ),
        (GOOD | {"test/b/.0.png": GRAY}, "test.b holds no images"),
        (GOOD | {"test/c/0.png": GRAY}, "test.c is of a class that .*train does not have"),
        ({"train/a/0.png": GRAY}, "test must be a folder"),
        ({"train/0.png": GRAY}, "train must be a folder"),
        (npz(x_train=X[:5].astype(int)), "x_train .*'uint8'.*'int64'"),
        (npz(x_test=X[5:] / 255), "x_test .*'uint8'.*'float64'"),
        (npz(x_train=X[:5] > 99), "x_test .*'bool'.*'uint8'"),
        (npz(x_train=X[:5] // 128, x_test=X[5:] // 128), "white is 255"),
        (
            IDX
            | {
                TRAIN_IMAGES: idx(FIVE + 1),
                TRAIN_LABELS: idx(FIVE[:, 0, 0]),
                TEST_IMAGES: idx(FIVE),
                TEST_LABELS: idx(FIVE[:, 0, 0]),
            },
            "white is 255",
        ),
        (GOOD | {"test/a/0.png": encoded(Image.new("L", (2, 2), 1))}, "white is 255"),
        *(
            (npz(y_train=np.full(5, top, np.uint64)), "y_train must be 5 .*<= 9223372036854775807")
            for top in (2**63, 2**64 - 1)
        ),
        *(
            (GOOD | {f"train/a/{name}": pages(name)}, f"train.a.{name} .* one page or frame, got 2")
            for name in ("1.tif", "1.png", "1.webp")
        ),
        (npz(x_train=X[:5] / 1.0), r"x_train must lie in \[0, 1\]"),
        (npz(x_train=X[:5] / 255, x_test=X[5:] / 255 - 0.01), r"x_test must lie in \[0, 1\]"),
        (npz(x_test=X[5:, :3, :3]), r"x_test .*\(4, 3, 3\)"),
        (npz(x_train=X[:5, :0, :0]), "x_train has no pixels"),
        (npz(y_train=Y[:4]), "y_train must be 5 .* got 4"),
        (npz(y_test=Y[5:] / 2), "y_test must be 4 whole numbers"),
        (npz(y_test=Y[5:].astype(int) - 3), "y_test must be 4 whole numbers >= 0"),
        (npz(y_train=np.array([{}] * 5)), "own.npz .* allow_pickle"),
        ({"own.npz": npz()["own.npz"][:-30]}, "own.npz cannot be used"),
        ({"own.npz": npz()["own.npz"].replace(b"y_train", b"Y_train")}, "own.npz .* no y_train"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load(write(tmp_path, files) / ("own.npz" if "own.npz" in files else ""), side=4)
    with pytest.raises(DataError, match=r"there is no .*minst: name 'digits', 'mnist', a folder"):
        load(tmp_path / "minst")


# ---- binarization, subsets


def test_threshold_is_one_from_half_of_white_on(tmp_path: Path) -> None:
    levels = np.tile(np.uint8([0, 127, 128, 255]), (5, 4)).reshape(5, 4, 4)
    folder = write(tmp_path / "steps", fake_files(5, side=4) | {TRAIN_IMAGES: idx(levels)})
    bits = load(folder, side=4, binarize="threshold", dtype="float64")
    np.testing.assert_array_equal(bits.train, np.tile([0.0, 0, 1, 1], (5, 4)))
    assert bits.train.dtype == np.float64
    # each block holds 0 127 0 127 or 128 255 128 255
    halves = load(folder, side=2, binarize="threshold")
    np.testing.assert_array_equal(halves.train, np.tile([0.0, 1], (5, 2)))


def test_a_mean_of_exactly_half_counts_as_one() -> None:
    # whole: their sums are exact
    levels = load("digits", side=8, dtype="float64").train.reshape(-1, 8, 8) * 16
    means = area_means(levels, 7)
    assert (means == 8).any()
    np.testing.assert_array_equal(load("digits", side=7, binarize="threshold").train, means >= 8)


def test_bernoulli_bits_have_the_gray_levels_as_their_probabilities() -> None:
    gray = load("digits", side=8)
    bits = np.array(
        [load("digits", side=8, binarize="bernoulli", seed=seed).train for seed in range(20)]
    )
    assert set(np.unique(bits)) == {0, 1}
    assert (bits[:, gray.train == 0] == 0).all()
    assert (bits[:, gray.train == 1] == 1).all()
    # the sums over one image have the mean and the variance of independent bits
    p = gray.train.astype(float)
    z = (bits.sum(axis=2) - p.sum(axis=1)) / np.sqrt((p * (1 - p)).sum(axis=1))
    assert stats.chi2(z.size).cdf((z**2).sum()) == pytest.approx(0.5, abs=0.4995)


def test_bernoulli_bits_are_set_by_the_seed_alone() -> None:
    first = load("digits", binarize="bernoulli", seed=3)
    again = load("digits", binarize="bernoulli", seed=3, dtype="float64", n_train=50)
    np.testing.assert_array_equal(again.test, first.test)
    assert (load("digits", binarize="bernoulli", seed=4).test != first.test).any()
    assert (first.train[:360] != first.test).any()


def test_sets_of_images_are_disjoint_and_the_first_is_the_usual_subset() -> None:
    sets = [load("digits", n_train=400, image_set=number, seed=1) for number in range(3)]
    rows = [{image.tobytes() for image in one.train} for one in sets]
    assert not rows[0] & rows[1] | rows[0] & rows[2] | rows[1] & rows[2]
    np.testing.assert_array_equal(sets[0].train, load("digits", n_train=400, seed=1).train)
    np.testing.assert_array_equal(sets[2].test, sets[0].test)


def test_there_are_as_many_sets_as_fit_and_no_more(tmp_path: Path) -> None:
    numbered = np.arange(30, dtype=np.uint8)
    folder = write(tmp_path / "numbered", fake_files(side=4) | {TRAIN_LABELS: idx(numbered)})
    for n, count in ((10, 3), (16, 1), (30, 1), (7, 4), (1, 30)):
        drawn = []
        for image_set in range(count):
            part = load(folder, side=4, n_train=n, image_set=image_set, seed=5)
            assert part.train_labels.size == len(part.train) == n
            drawn += part.train_labels.tolist()
        assert len({*drawn}) == n * count
        with pytest.raises(ValueError, match=f"image_set must be below {count} for {n} of 30"):
            load(folder, side=4, n_train=n, image_set=count)
    with pytest.raises(ValueError, match="n_train must be at most the 30 images of numbered"):
        load(folder, side=4, n_train=31)
    with pytest.raises(ValueError, match="image_set must be 0 where n_train takes all"):
        load(folder, side=4, image_set=1)
    for wrong in ({"n_train": 0}, {"n_train": 3, "image_set": -1}, {"seed": -1}, {"side": 0}):
        with pytest.raises(ValueError, match=f"{[*wrong][-1]} must be"):
            load(folder, **{"side": 4} | wrong)


@pytest.mark.parametrize("pooling", data_images.POOLING)
def test_both_parts_are_resized_as_they_are_asked_to_be(tmp_path: Path, pooling: str) -> None:
    folder = write(tmp_path / "numbered", fake_files(side=8))
    whole = load(folder, side=8, dtype="float64")
    small = load(folder, side=4, pooling=pooling, dtype="float64")
    for images, original in ((small.train, whole.train), (small.test, whole.test)):
        np.testing.assert_allclose(images, resize(original, 4, pooling), rtol=1e-12)
    usual = load(folder)
    given = load(
        folder, side=28, pooling="mean", binarize="gray", n_train=30, seed=0, dtype="float32"
    )
    np.testing.assert_array_equal(usual.train, given.train)
    np.testing.assert_array_equal(usual.train_labels, given.train_labels)
    np.testing.assert_array_equal(load("digits", side=8).train, load(side=8).train)


def test_what_is_known_of_digits_is_what_is_loaded() -> None:
    data = load("digits", side=8)
    assert known("digits") == (data.checksum, 1_437) == (data.checksum, len(data.train))
    assert data.class_names == ()


def test_every_fifth_digit_of_a_class_is_for_testing() -> None:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    by_class = sorted(range(len(labels)), key=lambda i: (labels[i], i))
    test = sorted(by_class[::5])
    data = load("digits", side=8, dtype="float64")
    np.testing.assert_array_equal(data.test, pixels[test] / 16)
    np.testing.assert_array_equal(data.test_labels, labels[test])
    train = sorted({*by_class} - {*test})
    np.testing.assert_array_equal(data.train, pixels[train] / 16)


def test_subsets_are_drawn_without_replacement_nested_and_in_order(tmp_path: Path) -> None:
    numbered = np.arange(30, dtype=np.uint8)
    folder = write(tmp_path / "numbered", fake_files(side=4) | {TRAIN_LABELS: idx(numbered)})
    images = load(folder, side=4).train
    for n in (1, 10, 29, 30):
        part = load(folder, side=4, n_train=n, seed=2)
        assert (part.train_labels.size, part.test_labels.size) == (
            n,
            len(load(folder, side=4).test_labels),
        )
        assert (np.diff(part.train_labels) > 0).all()
        np.testing.assert_array_equal(part.train, images[part.train_labels])
        assert set(part.train_labels) <= set(
            load(folder, side=4, n_train=min(n + 1, 30), seed=2).train_labels
        )
    part = load(folder, side=4, n_train=10)
    drawn = {
        label
        for seed in range(50)
        for label in load(folder, side=4, n_train=10, seed=seed).train_labels
    }
    assert drawn == set(range(30))


@pytest.mark.skipif(
    not os.environ.get("LEAMVD_DATA_DIR"), reason="LEAMVD_DATA_DIR does not name MNIST's folder"
)
def test_the_real_mnist() -> None:
    data = load("mnist")
    assert data.train.shape == (60_000, 784)
    assert data.test.shape == (10_000, 784)
    assert (data.train_labels[0], data.test_labels[0]) == (5, 7)
    assert data.train.mean(dtype=float) == pytest.approx(0.1307, abs=5e-5)
    assert data.checksum == "abca1685336e37aa33a42b8e8886e04e9bd739abb9c10b4340fdb3be3218f9e7"
    for name, digest in UNPACKED_SHA256.items():
        content = (idx_file(fetch_mnist(), name) or Path()).read_bytes()
        unpacked = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        assert hashlib.sha256(unpacked).hexdigest() == digest
