"""Small random files in the format and under the names of MNIST's."""

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leamvd_paper.data.mnist import MNIST_SHA256

NAMES = tuple(MNIST_SHA256)
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = NAMES


def idx(values: NDArray[np.uint8]) -> bytes:
    return (
        bytes((0, 0, 8, values.ndim))
        + struct.pack(f">{values.ndim}I", *values.shape)
        + values.tobytes()
    )


def fake_files(n_train: int = 30, n_test: int = 20, side: int = 28) -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    files = {}
    for images, labels, n in (
        (TRAIN_IMAGES, TRAIN_LABELS, n_train),
        (TEST_IMAGES, TEST_LABELS, n_test),
    ):
        files[images] = gzip.compress(idx(rng.integers(0, 256, (n, side, side), np.uint8)), mtime=0)
        files[labels] = gzip.compress(idx(rng.integers(0, 10, n, np.uint8)), mtime=0)
    return files


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for path, content in ((folder / name, content) for name, content in files.items()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
