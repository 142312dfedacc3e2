"""A worker of the attack suite: runs the cases of one family, one after the other, and says how each ended.

``python -m attack.worker FAMILY FIRST`` runs the cases from number FIRST on. A line of JSON says before each case that
it begins, and after it how it ended, so that whoever reads the lines knows in which case the process died or hung.
"""

import faulthandler
import importlib
import json
import resource
import signal
import sys
import time

from attack.outcomes import Wrong, is_refusal, slowness

MEMORY = 6 << 30  # bytes of address space for a worker
SECONDS = 40  # for one case, before it counts as a hang: many times what any takes; as many times more as `slowness`


def end_of(case) -> tuple[str, str]:
    """How a case ended: ``right``, ``refused`` or ``wrong``, and what there is to say of it."""
    try:
        case()
    except Wrong as error:
        return "wrong", str(error)
    except BaseException as error:
        kind = type(error).__name__
        if is_refusal(error):
            return "refused", f"{kind}: {error}"[:200]
        return "wrong", f"{kind}: {error}"[:400]
    return "right", ""


def main() -> None:
    family, first = sys.argv[1], int(sys.argv[2])
    out = sys.stdout
    sys.stdout = sys.stderr  # what cases print is not ours to read
    say = lambda **facts: print(json.dumps(facts), file=out, flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = list(importlib.import_module(f"attack.{family}").cases())
    say(total=len(cases))
    for number, (name, case) in enumerate(cases[first:], first):
        say(begins=number, name=name)
        faulthandler.dump_traceback_later((SECONDS - 5) * slowness(), exit=False)
        start = time.perf_counter()
        ended, note = end_of(case)
        faulthandler.cancel_dump_traceback_later()
        say(number=number, name=name, ended=ended, note=note, seconds=round(time.perf_counter() - start, 2))


if __name__ == "__main__":
    main()
