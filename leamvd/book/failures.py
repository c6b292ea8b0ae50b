"""What a file system refuses, in one sentence with what to do."""

import errno
import re

_ROOM = "make room on the disk, or name a folder on another; what is stored is whole, and the same command carries on"
_OTHER = "name another folder, or change its permissions"
_FILE = "a file is where a folder should be; name another folder"
_AGAIN = "what is stored is whole, and the same command carries on"

_ADVICE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EROFS: _OTHER,
    errno.EACCES: _OTHER,
    errno.EPERM: _OTHER,
    errno.ENOTDIR: _FILE,
    errno.EEXIST: _FILE,
    errno.ENAMETOOLONG: "name a shorter one",
    errno.ENOENT: "it was removed, or never there; what is stored is whole, and the same command carries on",
}


def sentence(message: str) -> str:
    """Return what an error says, of a notebook's kernel too, with what to do where it is an OSError with a number."""
    return re.sub(r"\[Errno (\d+)\] (.*)", lambda told: f"{told[2]}: {_ADVICE.get(int(told[1]), _AGAIN)}", message)
