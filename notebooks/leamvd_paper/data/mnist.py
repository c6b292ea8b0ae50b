"""MNIST's four original files: found in a folder or downloaded, each checked by its SHA-256."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)
MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
UNPACKED_SHA256 = {  # of the same files without .gz
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
N_TRAIN = 60_000  # training images
TIMEOUT = 15.0  # seconds without a byte after which a server counts as stalled


class DataError(RuntimeError):
    """A data set is missing, damaged or could not be downloaded; the message says which file and
    what to do.
    """


def fetch_mnist(source: str | Path | None = None, *, progress: bool = True) -> Path:
    """Find or download the four original files of MNIST, each checked by its SHA-256.

    Parameters
    ----------
    source : str, Path or None
        A folder that holds the files, unpacked or not, or its ``file:`` address, which is never
        written to; or an http(s) address to download from instead of the mirrors. None: the folder
        that the environment variable ``LEAMVD_DATA_DIR`` names, if any.
    progress : bool
        Show a progress bar for each download.

    Returns
    -------
    Path
        The folder with the verified files. Downloads go to the user's cache folder, where only
        missing or damaged files are fetched; a file appears there under its name only once it is
        complete and verified.

    Raises
    ------
    DataError
        Files of a given folder are missing or damaged, or every mirror failed.
    """
    if source == "":
        raise DataError(
            "there is no data set '': name a folder with MNIST's original files, or an address"
        )
    if isinstance(source, str) and source.startswith("file:"):
        source = url2pathname(urlsplit(source).path)
    address = isinstance(source, str) and source.startswith(("http://", "https://"))
    folder = os.environ.get("LEAMVD_DATA_DIR") if source is None else source
    if folder and not address:
        named_by = "source" if source else "LEAMVD_DATA_DIR"
        return _verified(Path(folder).expanduser(), named_by)

    import pooch

    cache = Path(pooch.os_cache("leamvd")) / "mnist"
    mirrors: Iterable[str] = (str(source).rstrip("/") + "/",) if address else MIRRORS
    for name in MNIST_SHA256:
        _download(name, cache, mirrors, progress)
    return cache


def idx_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, gzipped or not, also ``images.idx3`` for
    ``images-idx3``; or None.
    """
    dotted = name.replace("-idx", ".idx")
    for spelled in (f"{name}.gz", name, f"{dotted}.gz", dotted):
        path = folder / spelled
        if path.is_file():
            return path
    return None


def _download(name: str, cache: Path, mirrors: Iterable[str], progress: bool) -> None:
    import pooch

    failures = []
    for mirror in mirrors:
        try:
            # checks what is there, downloads to a temporary file, checks that, moves it to its name
            pooch.retrieve(
                mirror + name,
                known_hash=f"sha256:{MNIST_SHA256[name]}",
                fname=name,
                path=cache,
                downloader=pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT),
            )
            return
        # requests' exceptions are OSErrors; a wrong hash is a ValueError
        except (OSError, ValueError) as error:
            failures.append(f"  {mirror}: {error}")
    raise DataError(
        f"{name} of MNIST could not be downloaded to {cache}:\n"
        + "\n".join(failures)
        + "\nTry again (what has arrived is kept), take another address by `leamvd data mnist"
        " --from URL`, or name a folder with the four original files by LEAMVD_DATA_DIR. The data"
        " set 'digits' needs no network."
    )


def _verified(folder: Path, named_by: str) -> Path:
    problems = []
    for name, unpacked in UNPACKED_SHA256.items():
        path = idx_file(folder, name)
        if path is None:
            problems.append(f"  {name}.gz: missing")
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest not in (MNIST_SHA256[f"{name}.gz"], unpacked):
            problems.append(
                f"  {path.name}: truncated or altered: its SHA-256 is not the original's"
            )
    if problems:
        raise DataError(
            f"{folder} (named by {named_by}) does not hold MNIST's original files:\n"
            + "\n".join(problems)
            + "\nReplace these files, or name another folder by LEAMVD_DATA_DIR or `leamvd data"
            " mnist --from DIR`; with neither, they are downloaded."
        )
    return folder
