"""One measurement in a fresh process: ``python -m leamvd.bench.worker REQUEST`` prints what it found as JSON.

A process of its own has a memory peak of its own, and its end costs one row of a table, whatever ended it.
"""

import json
import os
import pkgutil
import sys
from typing import Any

from leamvd.bench.baselines import RefusalError

ANSWER = "leamvd bench: "
"""What the line with the answer begins with: packages print lines of their own."""


def main(request: dict[str, Any]) -> None:
    """Call the function that a request names, on its threads, and print status and rows in one line.

    Parameters
    ----------
    request : dict
        ``function``, as "module:name"; its ``arguments``; ``threads``, to which the processors are limited where the
        system allows it. How many threads the libraries start is decided by environment variables, before this process
        imports them: see `leamvd.bench.jobs.Row`.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-request["threads"] :])
    rows: list[dict[str, Any]] = []
    try:
        rows, status = pkgutil.resolve_name(request["function"])(**request["arguments"]), "ok"
    except RefusalError as error:
        status = f"refused: {error}"
    except Exception as error:
        status = f"failed: {type(error).__name__}: {error}"
    print("\n" + ANSWER + json.dumps({"status": " ".join(status.split()), "rows": rows}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
