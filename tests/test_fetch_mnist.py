import gzip
import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pooch
import pytest

from idx_files import (
    NAMES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    contents,
    fake_files,
    write,
)
from leamvd_paper.data import mnist
from leamvd_paper.data.images import known, load
from leamvd_paper.data.mnist import DataError, fetch_mnist, idx_file


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Small files that stand for MNIST: their hashes are the ones expected."""
    files = fake_files()
    unpacked = {
        name.removesuffix(".gz"): gzip.decompress(content) for name, content in files.items()
    }
    for digests, known_files in (("MNIST_SHA256", files), ("UNPACKED_SHA256", unpacked)):
        monkeypatch.setattr(
            mnist, digests, {n: hashlib.sha256(c).hexdigest() for n, c in known_files.items()}
        )
    return files


def test_mnist_from_a_folder_is_verified_and_never_written(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "given", files)
    assert fetch_mnist(folder) == fetch_mnist(str(folder)) == fetch_mnist(folder.as_uri()) == folder
    monkeypatch.setenv("LEAMVD_DATA_DIR", str(folder))
    assert fetch_mnist() == folder
    data = load("mnist", side=7)
    np.testing.assert_array_equal(data.train, load(folder, side=7).train)
    write(
        folder,
        {TRAIN_LABELS: files[TRAIN_LABELS][:-1], TEST_LABELS: files[TEST_LABELS][:-1] + b"?"},
    )
    (folder / TEST_IMAGES).unlink()
    before = contents(folder)
    for call, by in (
        (lambda: load("mnist"), "LEAMVD_DATA_DIR"),
        (lambda: fetch_mnist(folder), "source"),
    ):
        with pytest.raises(DataError, match=re.escape(f"{folder} (named by {by})")) as caught:
            call()
        found = re.findall(
            r"^  (\S+): (truncated or altered|missing)", str(caught.value), re.MULTILINE
        )
        assert dict(found) == {
            TRAIN_LABELS: "truncated or altered",
            TEST_LABELS: "truncated or altered",
            TEST_IMAGES: "missing",
        }
    assert contents(folder) == before


def test_mnist_is_taken_unpacked_and_its_checksum_stays(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = {
        name[:-3].replace("-idx", ".idx"): gzip.decompress(content)
        for name, content in files.items()
    }
    folder = write(tmp_path / "unpacked", unpacked | {TEST_LABELS: files[TEST_LABELS]})
    monkeypatch.setenv("LEAMVD_DATA_DIR", str(folder))
    data = load("mnist", side=7)
    np.testing.assert_array_equal(data.train, load(write(tmp_path / "packed", files), side=7).train)
    assert data.checksum == known("mnist")[0]
    write(folder, {"t10k-images.idx3-ubyte": unpacked["train-images.idx3-ubyte"]})
    with pytest.raises(DataError, match=r"t10k-images\.idx3-ubyte: truncated or altered"):
        load("mnist")


def test_an_address_of_a_folder_is_read_as_addresses_are_written(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    folder = write(tmp_path / "my d\u00e4ta #1", files)
    assert "%20" in folder.as_uri()
    assert fetch_mnist(folder.as_uri()) == folder


def test_a_tilde_is_the_home_folder(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "mnist", files)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert fetch_mnist("~/mnist") == folder
    monkeypatch.setenv("LEAMVD_DATA_DIR", "~/mnist")
    assert fetch_mnist() == folder
    with pytest.raises(DataError, match="no data set ''"):
        fetch_mnist("")
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(DataError, match="named by source"):  # which goes before the variable
        fetch_mnist(other)


def test_of_a_file_in_two_forms_the_gzipped_one_under_mnists_name_is_taken(tmp_path: Path) -> None:
    name = "train-images-idx3-ubyte"
    spelled = [f"{name}.gz", name, "train-images.idx3-ubyte.gz", "train-images.idx3-ubyte"]
    assert idx_file(tmp_path, name) is None
    (tmp_path / f"{name}.gz").mkdir()  # which is no file
    for form in spelled[:0:-1]:
        (tmp_path / form).touch()
        assert idx_file(tmp_path, name) == tmp_path / form
    (tmp_path / f"{name}.gz").rmdir()
    (tmp_path / f"{name}.gz").touch()
    assert idx_file(tmp_path, name) == tmp_path / f"{name}.gz"


def test_the_real_mnist_is_known_without_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "MIRRORS", ())
    monkeypatch.delenv("LEAMVD_DATA_DIR", raising=False)
    digest = "abca1685336e37aa33a42b8e8886e04e9bd739abb9c10b4340fdb3be3218f9e7"
    assert known("mnist") == (digest, 60_000)


class Handler(BaseHTTPRequestHandler):
    """Answers /BEHAVIOR/NAME."""

    server: "Server"

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        _, behavior, name = self.path.split("/")
        content = self.server.files[name]
        if behavior.isdigit():
            self.send_error(int(behavior))
            return
        if behavior == "silent":
            self.server.closing.wait(10)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if behavior == "altered":
            content = content[:-1] + bytes([content[-1] ^ 1])
        elif behavior in ("truncated", "stalled"):
            content = content[: len(content) // 2]
        self.wfile.write(content)
        if behavior == "stalled":
            self.server.closing.wait(10)


class Server(ThreadingHTTPServer):
    """Listens on the loopback interface and keeps a list of what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.closing = files, list[str](), threading.Event()

    def address(self, behavior: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{behavior}/"


@pytest.fixture
def server(files: dict[str, bytes], cache: Path) -> Iterator[Server]:
    with Server(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LEAMVD_DATA_DIR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr(mnist, "TIMEOUT", 1)
    monkeypatch.setattr(mnist, "MIRRORS", ())  # no test leaves this machine
    return tmp_path / "cache" / "leamvd" / "mnist"


def refused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


MISBEHAVIOR = ["404", "500", "truncated", "altered", "silent", "stalled", "refused"]


@pytest.mark.parametrize("misbehavior", MISBEHAVIOR)
def test_a_failed_download_says_why_leaves_nothing_and_the_next_mirror_is_tried(
    misbehavior: str,
    server: Server,
    cache: Path,
    files: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = refused() if misbehavior == "refused" else server.address(misbehavior)
    said = rf"(?s)^{TRAIN_IMAGES} of MNIST could not .*\n  {address}: .*\n.*--from"
    with pytest.raises(DataError, match=said):
        fetch_mnist(address, progress=False)
    cache.mkdir(parents=True, exist_ok=True)
    assert contents(cache) == {}
    # one that is damaged is replaced
    write(cache, files | {TRAIN_IMAGES: files[TRAIN_IMAGES][:-1]})
    monkeypatch.setattr(mnist, "MIRRORS", (address, server.address("good")))
    assert fetch_mnist(progress=False) == cache
    assert contents(cache) == files
    assert [path for path in server.asked if path.startswith("/good/")] == [f"/good/{TRAIN_IMAGES}"]


@pytest.mark.parametrize(("progress", "slash"), [(True, "/"), (False, "")])
def test_a_good_download_is_complete_cached_and_shown(
    server: Server,
    cache: Path,
    files: dict[str, bytes],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    progress: bool,
    slash: str,
) -> None:
    assert fetch_mnist(server.address("good").rstrip("/") + slash, progress=progress) == cache
    assert contents(cache) == files
    assert ("100%" in capfd.readouterr().err) == progress
    assert server.asked == [f"/good/{name}" for name in NAMES]
    monkeypatch.setattr(mnist, "MIRRORS", (refused(),))
    assert load("mnist").train.shape == (30, 784)  # from the cache
    assert len(server.asked) == 4


@pytest.mark.usefixtures("cache")
def test_all_mirrors_are_tried_in_their_order_and_each_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = [refused(), refused().replace("http:", "https:"), refused()]
    monkeypatch.setattr(mnist, "MIRRORS", addresses)
    with pytest.raises(DataError) as caught:
        fetch_mnist(progress=False)
    said = re.findall(r"^  (https?://127\.0\.0\.1:\d+/): ", str(caught.value), re.MULTILINE)
    assert said == addresses
    with pytest.raises(DataError, match=rf"could not be downloaded .*\n  {addresses[1]}: "):
        fetch_mnist(addresses[1], progress=False)


def test_an_address_without_a_server_is_a_data_error(cache: Path) -> None:
    with pytest.raises(
        DataError, match=rf"{TRAIN_IMAGES} of MNIST could not be downloaded .*\n.*Invalid URL"
    ):
        fetch_mnist("http://", progress=False)


def test_what_arrived_before_a_failure_is_kept(
    server: Server, cache: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    write(cache, {TRAIN_IMAGES: files[TRAIN_IMAGES], TRAIN_LABELS: b"damaged"})
    with pytest.raises(DataError, match=f"^{TRAIN_LABELS} of MNIST"):
        fetch_mnist(server.address("truncated"), progress=False)
    assert contents(cache)[TRAIN_IMAGES] == files[TRAIN_IMAGES]


def test_a_cache_that_cannot_be_written_is_a_data_error(server: Server, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=rf"{TRAIN_IMAGES} of MNIST could not be downloaded"):
        fetch_mnist(server.address("good"), progress=False)
