"""Handwritten digits: MNIST, scikit-learn's embedded digits or files of one's own, resized and
binarized.
"""

import glob
import gzip
import hashlib
import io
import math
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leamvd._support import checks
from leamvd_paper.data.mnist import MNIST_SHA256, N_TRAIN, DataError, fetch_mnist, idx_file

NAMED = ("digits", "mnist")
POOLING = ("mean", "center")
# of torchvision's ImageFolder
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

_BLOCK = 4096  # images resized at once: bounds the memory of the float64 copies


class Dataset(NamedTuple):
    """Square images as rows, with their labels.

    Attributes
    ----------
    train, test : NDArray, shape (n_train, side * side) and (n_test, side * side)
        Pixels in [0, 1], row by row from the top left.
    train_labels, test_labels : NDArray[np.int64], shape (n_train,) and (n_test,)
        The class of each image.
    checksum : str
        SHA-256 of the source. For files: of the list that ``sha256sum`` prints for them, sorted by
        their paths in the folder, MNIST's gzipped; for the embedded digits: of all gray levels,
        then all labels, one byte each.
    side : int
        Pixels along one side of an image.
    class_names : tuple of str
        The name of each label, from 0 on, where a source has names: those of the folders of a
        folder of images.
    """

    train: NDArray[Any]
    train_labels: NDArray[np.int64]
    test: NDArray[Any]
    test_labels: NDArray[np.int64]
    checksum: str
    side: int
    class_names: tuple[str, ...] = ()


class _Source(NamedTuple):
    name: str
    # train, test: (n, side * side), and n labels
    parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]
    white: int  # the highest gray level
    checksum: str
    class_names: tuple[str, ...] = ()


def load(
    source: str | Path = "digits",
    *,
    side: int = 28,
    pooling: str = "mean",
    binarize: str = "gray",
    n_train: int | None = None,
    image_set: int = 0,
    seed: int = 0,
    dtype: str = "float32",
) -> Dataset:
    """Load a data set at the size asked for.

    Parameters
    ----------
    source : str or Path
        "digits": scikit-learn's 1,797 embedded digits (8 x 8), needs no network. Every fifth image
        of the stable sort by class is a test image: 1,437 for training and 360 for testing,
        whatever the seed. "mnist": the folder that `fetch_mnist` finds or fills. A folder with
        images in ``train/CLASS`` and ``test/CLASS``, as for torchvision's ImageFolder: labels are
        places in the sorted names of the classes. What is hidden is left out, colors become gray,
        transparent pixels white; images are turned as they say. A folder with four IDX files under
        MNIST's names, gzipped or not (Fashion-MNIST, say). An ``.npz`` file with ``x_train``,
        ``y_train``, ``x_test`` and ``y_test``, as Keras has MNIST: images of shape (n, side, side),
        uint8 with white at 255, bool with white at True, or floats in [0, 1], and labels.
    side : int
        Side of the images, made by `resize`: 28 and 7 in the paper.
    pooling : {"mean", "center"}
        Item E4: what stands for a block of pixels in a smaller image, their mean or the one at the
        center.
    binarize : {"gray", "threshold", "bernoulli"}
        Item E3: gray levels divided by white; 1 where that is at least 0.5; or 1 with that
        probability.
    n_train : int or None
        Size of a subset of training images, drawn without replacement and kept in the source's
        order; None takes all. With one seed a smaller subset is part of a larger one.
    image_set : int
        Which of the disjoint subsets of so many training images.
    seed : int
        Seed of the subsets and of the Bernoulli samples; training and test images have streams of
        their own.
    dtype : {"float32", "float64"}
        Type of the pixels.

    Returns
    -------
    Dataset
        The images, their labels and the checksum of their source.

    Raises
    ------
    DataError
        A file is missing or damaged, or could not be downloaded.
    TypeError, ValueError
        An argument is of the wrong type or out of range; a subset is larger than its source.
    """
    side = checks.integer("side", side, at_least=1)
    checks.choice("pooling", pooling, POOLING)
    checks.choice("binarize", binarize, ("gray", "threshold", "bernoulli"))
    checks.choice("dtype", dtype, ("float32", "float64"))
    rng = np.random.default_rng(checks.integer("seed", seed, at_least=0))
    first = checks.integer("image_set", image_set, at_least=0)
    if n_train is not None:
        checks.integer("n_train", n_train, at_least=1)
    elif first:
        raise ValueError(f"image_set must be 0 where n_train takes all images, got {first}")

    data = _checked(source)
    parts = []
    for n, (images, labels) in zip((n_train, None), data.parts, strict=True):
        subset_rng, bits_rng = rng.spawn(2)
        if n is not None:
            chosen = _subset(data, n, first, subset_rng)
            images = images[chosen]
            labels = labels[chosen]
        if images.shape[1] != side**2:
            blocks = np.split(images, range(_BLOCK, len(images), _BLOCK))
            images = np.concatenate([resize(block, side, pooling) for block in blocks])
        pixels = _binarize(images, data.white, binarize, bits_rng, dtype)
        parts.append((pixels, labels.astype(np.int64)))

    return Dataset(*parts[0], *parts[1], data.checksum, side, data.class_names)


def _subset(data: _Source, n: int, image_set: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the places of one of the disjoint subsets of training images, in the source's
    order.
    """
    count = len(data.parts[0][0])
    if n > count:
        raise ValueError(f"n_train must be at most the {count} images of {data.name}, got {n}")
    if image_set >= count // n:
        raise ValueError(
            f"image_set must be below {count // n} for {n} of {count}, got {image_set}"
        )
    return np.sort(rng.permutation(count)[image_set * n : (image_set + 1) * n])


def known(source: str | Path) -> tuple[str, int]:
    """Return the checksum of a data set and the number of its training images; MNIST's without its
    files.
    """
    if source == "mnist":
        return _checksum(MNIST_SHA256), N_TRAIN
    data = _checked(source)
    return data.checksum, len(data.parts[0][0])


def _checked(source: str | Path) -> _Source:
    """Return a data set; a DataError where its bytes are zeros and ones, which would be nearly
    black gray levels.
    """
    data = _read(source)
    if data.white == 255 and max(images.max() for images, _ in data.parts) == 1:
        raise DataError(
            f"{data.name} has gray levels of 0 and 1 alone, and in bytes white is 255: multiply"
            " them by it"
        )
    return data


def _read(source: str | Path) -> _Source:
    if source == "digits":
        return _digits()
    named = "name 'digits', 'mnist', a folder of images or IDX files, or an .npz file"
    if source == "":  # which a path takes for the folder that one is in
        raise DataError(f"there is no data set '': {named}")
    if source == "mnist":  # unpacked or not
        folder = fetch_mnist(progress=sys.stderr.isatty()).resolve()
        return _read_idx(folder)._replace(checksum=_checksum(MNIST_SHA256))
    path = Path(source).expanduser().resolve()
    if (path / "train").is_dir():
        return _read_images(path)
    if path.is_dir():
        return _read_idx(path)
    if path.is_file():
        return _read_npz(path)
    raise DataError(f"there is no {path}: {named}")


def _checksum(digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of what ``sha256sum`` prints for files, given theirs by name."""
    listing = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(listing.encode(errors="surrogateescape")).hexdigest()


def resize(images: ArrayLike, side: int, pooling: str = "mean") -> NDArray[np.float64]:
    r"""Resize square images: by exact area averaging to fewer pixels, by linear interpolation to
    more.

    An image of n x n pixels is a function x on the unit square that is constant on each pixel. A
    new pixel of a smaller image is the mean of x over the new pixel's square,

    .. math:: y_{ij} = s^2 \sum_{k, l} L_{ik} \, x_{kl} \, L_{jl},

    where s is the new side and :math:`L_{ik}` the length that the intervals [i/s, (i+1)/s] and
    [k/n, (k+1)/n] share. Where s divides n this is the mean of blocks (item E4: 28 to 7 by blocks
    of 4 x 4), and for any s it keeps the mean of the image. The lengths are taken in units of 1/(n
    s), so that whole gray levels are summed exactly and the result is the same bits on any machine.

    With ``pooling="center"`` the new pixel is the value of x at the center of the new pixel's
    square; of a block with an even number of pixels that is the one below and right of the center.

    A larger image is interpolated linearly along both axes between the centers of the old pixels
    and constant beyond the outermost centers.

    Parameters
    ----------
    images : array_like, shape (m, n * n)
        One image a row.
    side : int
        The new side s.
    pooling : {"mean", "center"}
        What a pixel of a smaller image is.

    Returns
    -------
    NDArray[np.float64], shape (m, side * side)
        New pixels, within the range of the old ones.

    Raises
    ------
    ValueError
        There are no rows, they are not square images, or a pixel is not finite; or there is no such
        pooling.
    """
    side = checks.integer("side", side, at_least=1)
    checks.choice("pooling", pooling, POOLING)
    rows = checks.array("images", images, shape=(None, None), dtype=np.float64)
    old = math.isqrt(rows.shape[1])
    if rows.size == 0 or old**2 != rows.shape[1]:
        raise ValueError(
            f"images must be rows with a square number of pixels, got shape {rows.shape}"
        )
    if side == old:
        return rows.copy()
    pictures = rows.reshape(-1, old, old)
    if side < old and pooling == "center":
        centers = (2 * np.arange(side) + 1) * old // (2 * side)
        resized: NDArray[np.float64] = pictures[:, centers[:, None], centers]
    elif side < old:
        shared = _shared_lengths(old, side)
        resized = shared @ pictures @ shared.T / old**2
    else:
        from scipy import ndimage

        factors = (1, side / old, side / old)
        resized = ndimage.zoom(pictures, factors, order=1, mode="nearest", grid_mode=True)
    # a mean may leave the range of its terms by a rounding
    return resized.reshape(-1, side**2).clip(rows.min(), rows.max())


def _shared_lengths(old: int, side: int) -> NDArray[np.float64]:
    """Return the length that each new interval shares with each old one, in units of 1 / (old
    side).
    """
    new_edges = np.arange(side + 1.0) * old
    old_edges = np.arange(old + 1.0) * side
    ends = np.minimum(new_edges[1:, None], old_edges[1:])
    begins = np.maximum(new_edges[:-1, None], old_edges[:-1])
    shared: NDArray[np.float64] = (ends - begins).clip(min=0)
    return shared


def _read_images(folder: Path) -> _Source:
    classes: list[str] = []
    side = 0
    digests = {}
    parts = []
    for part in (folder / "train", folder / "test"):
        images = _images_of(part)
        names = [path.parts[0] for path in images]
        classes = classes or sorted({*names})
        unknown = {*names} - {*classes}
        if unknown:
            raise DataError(
                f"{part / min(unknown)} is of a class that {folder / 'train'} does not have"
            )
        rows = []
        for path in images:
            pixels, digest = _read_gray(part / path, side)
            digests[f"{part.name}/{path.as_posix()}"] = digest
            rows.append(pixels)
            side = math.isqrt(pixels.size)
        parts.append((np.array(rows), np.searchsorted(classes, names)))
    return _Source(folder.name, parts, 255, _checksum(digests), tuple(classes))


def _images_of(part: Path) -> list[Path]:
    """Return the paths of a part's images in it, in ImageFolder's order, the same on any file
    system.
    """
    # `glob` follows links and leaves out what is hidden
    found = map(Path, glob.glob("*/**/*.*", root_dir=part, recursive=True))  # noqa: PTH207
    images = [path for path in found if path.suffix.lower() in EXTENSIONS]
    images.sort(key=lambda path: (path.parts[0], path.parent.as_posix(), path.name))
    filled = {path.parts[0] for path in images}
    for folder in sorted(part.glob("[!.]*/")):
        if folder.name not in filled:
            raise DataError(f"{folder} holds no images, files that end in {', '.join(EXTENSIONS)}")
    if not images:
        raise DataError(f"{part} must be a folder with a folder of images for each class")
    return images


def _read_gray(path: Path, side: int) -> tuple[NDArray[np.uint8], str]:
    """Return an image's gray levels, shape (side * side,), and the SHA-256 of its file; a side of 0
    is any.
    """
    from PIL import Image, ImageOps

    with _reading(path):
        content = path.read_bytes()
        with Image.open(io.BytesIO(content)) as image:
            frames = getattr(image, "n_frames", 1)
            if frames > 1:
                raise ValueError(f"images must have one page or frame, got {frames}")
            image.load()  # which turns TIFF already
            ImageOps.exif_transpose(image, in_place=True)
            if image.size != (side or image.width,) * 2:
                size = f"{side} x {side}" if side else "square"
                raise ValueError(
                    f"images must all be {size}, got {image.width} x {image.height} pixels"
                )
            if image.mode[0] in "IF":  # clipped otherwise
                raise ValueError(f"pixels must have 8 bits a color, got mode {image.mode}")
            white = Image.new("RGBA", image.size, "white")
            on_white = Image.alpha_composite(white, image.convert("RGBA"))
            gray = np.asarray(on_white.convert("L"))
    return gray.ravel(), hashlib.sha256(content).hexdigest()


def _read_npz(path: Path) -> _Source:
    types = ["uint8", "bool", "float16", "float32", "float64"]  # then that of training images
    side: int | None = None
    parts = []
    with _reading(path):
        content = path.read_bytes()
        with np.lib.npyio.NpzFile(io.BytesIO(content), allow_pickle=False) as file:
            names = ("x_train", "y_train", "x_test", "y_test")
            missing = [name for name in names if name not in file]
            if missing:
                raise ValueError(f"it has no {' and no '.join(missing)}")
            for part in ("train", "test"):
                images = np.asarray(file[f"x_{part}"])
                labels = np.asarray(file[f"y_{part}"])
                images = _checked_images(f"x_{part}", images, types, side)
                types = [images.dtype.name]
                side = images.shape[1]
                labels = _checked_labels(f"y_{part}", labels, len(images))
                parts.append((images.reshape(len(images), -1), labels))
    checksum = _checksum({path.name: hashlib.sha256(content).hexdigest()})
    white = 255 if types == ["uint8"] else 1
    return _Source(path.name, parts, white, checksum)


def _checked_images(
    name: str, images: NDArray[Any], types: list[str], side: int | None
) -> NDArray[Any]:
    """Return images that are square, of a side, if any, and of one of some types."""
    checks.choice(f"type of {name}", images.dtype.name, types)
    if side is None and images.ndim == 3:
        side = images.shape[1]
    images = checks.array(name, images, shape=(None, side, side), dtype=images.dtype.name)
    if not images.size:
        raise ValueError(f"{name} has no pixels")
    if images.dtype.kind == "f" and not 0 <= images.min() <= images.max() <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {images.min()} to {images.max()}")
    return images


def _checked_labels(name: str, labels: NDArray[Any], count: int) -> NDArray[Any]:
    most = np.iinfo(np.int64).max
    whole = labels.dtype.kind in "iu" and labels.size == count
    if not whole or not 0 <= labels.min() <= labels.max() <= most:
        have = f"{labels.size}: {checks.shown(labels)}"
        raise ValueError(f"{name} must be {count} whole numbers >= 0 and <= {most}, got {have}")
    return labels.ravel()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file in any error: libraries raise many kinds of them for damaged files."""
    try:
        yield
    except Exception as error:
        raise DataError(f"{path} cannot be used: {str(error) or repr(error)}") from error


def _read_idx(folder: Path) -> _Source:
    digests = {}
    parts = []
    shapes = []
    for part in ("train", "t10k"):
        arrays = []
        for name, axes in ((f"{part}-images-idx3-ubyte", 3), (f"{part}-labels-idx1-ubyte", 1)):
            path = idx_file(folder, name)
            if path is None:
                raise DataError(
                    f"{folder} has neither {name}, gzipped or not, nor a folder 'train' of images"
                    " by class"
                )
            content = path.read_bytes()
            digests[path.name] = hashlib.sha256(content).hexdigest()
            arrays.append(_parse_idx(content, axes, path))
        images, labels = arrays
        if len(images) != len(labels):
            counts = f"{len(images)} images but {len(labels)} labels"
            raise DataError(
                f"{folder} has {counts} in its {part}-* files: they do not belong together"
            )
        parts.append((images.reshape(len(images), -1), labels))
        shapes.append(images.shape[1:])
    if len({side for shape in shapes for side in shape}) > 1:
        sizes = " and ".join("{} x {}".format(*shape) for shape in shapes)
        raise DataError(f"images in {folder} must be square and of one size, got {sizes} pixels")
    return _Source(folder.name, parts, 255, _checksum(digests))


def _parse_idx(content: bytes, axes: int, path: Path) -> NDArray[np.uint8]:
    """Parse an IDX file: two zero bytes, 8 (unsigned bytes), the number of axes, their lengths, the
    values.
    """
    again = "copy or download the file again"
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{path} is a damaged gzip file ({error}): {again}") from error
    header = 4 + 4 * axes
    if content[:4] != bytes((0, 0, 8, axes)) or len(content) < header:
        raise DataError(f"{path} is not an IDX file of unsigned bytes with {axes} axes: {again}")
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", count=axes, offset=4))
    if 0 in shape or len(content) != header + math.prod(shape):
        have = len(content) - header
        announced = " x ".join(map(str, shape))
        raise DataError(
            f"{path} holds {have} values where its header announces {announced}: {again}"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _digits() -> _Source:
    from sklearn.datasets import load_digits

    levels, classes = load_digits(return_X_y=True)
    images = levels.astype(np.uint8)
    labels = classes.astype(np.uint8)
    test = np.zeros(len(labels), bool)
    test[np.argsort(labels, kind="stable")[::5]] = True
    parts = [(images[~test], labels[~test]), (images[test], labels[test])]
    checksum = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    return _Source("scikit-learn digits", parts, 16, checksum)


def _binarize(
    levels: NDArray[Any], white: int, how: str, rng: np.random.Generator, dtype: str
) -> NDArray[Any]:
    if how == "threshold":
        pixels: NDArray[Any] = levels >= white / 2
    elif how == "bernoulli":  # in float32 whatever the dtype: the same bits for both
        pixels = rng.random(levels.shape, np.float32) < np.divide(levels, white, dtype=np.float32)
    else:
        pixels = np.divide(levels, white, dtype=dtype)
    return pixels.astype(dtype, copy=False)
