#!/usr/bin/env python3
"""Checks that includes only point leftwards along the line that data takes (see docs/tour.md).

    include_order.py ROOT          exit status 1 and a list if a file of ROOT/src or ROOT/include breaks the order
    include_order.py --self-test   checks the check: each kind of bad include is noticed

Folders on one level may not include each other, but for the pairs in ALLOWED. Files of more than 500 lines are
mentioned, without failing.
"""
import pathlib
import re
import sys
import tempfile

LEVELS = ["base", "graph", "ops", "autodiff", "passes", "plan", "backends", "nn data formats", "run", "profile", "study",
          "capi", "cli"]
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders.split()}
ALLOWED = {("data", "formats")}
# Within backends/, a backend knows the shared files and itself, never another backend; the list of backends (a .cpp
# directly in backends/) knows them all.
BACKENDS = "backends"
LONGEST_FILE = 500
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:HWY_TARGET_INCLUDE\s*)?["<]([^">]+)[">]')


def fault(path, target):
    """Why the file at `path` (parts below src/) may not include `target`, or None."""
    folder, other = path[0], target.split("/")[0]
    if target.startswith("stoker/"):
        # The error type is public and underlies everything; the rest of the public API is what run/ offers.
        if target == "stoker/error.hpp" or LEVEL[folder] >= LEVEL["run"]:
            return None
        return f"{folder} may include no public header but stoker/error.hpp"
    if other not in LEVEL or "/" not in target:
        return None  # a system header or another library's
    if other == folder:
        parts = target.split("/")
        if folder == BACKENDS and len(path) > 2 and len(parts) > 2 and path[1] != parts[1]:
            return f"backend {path[1]} may not include backend {parts[1]}"
        if folder == BACKENDS and len(path) == 2 and path[1].endswith(".h") and len(parts) > 2:
            return f"a header of {BACKENDS} itself may not include a particular backend"
        return None
    if (folder, other) in ALLOWED or LEVEL[other] < LEVEL[folder]:
        return None
    return f"{folder} may not include {other}"


def check(root):
    faults = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".hpp", ".cpp", ".inc"):
            continue
        parts = path.relative_to(root / "src").parts
        if len(parts) < 2 or parts[0] not in LEVEL:
            faults.append(f"{path.relative_to(root)}: not in one of the folders {', '.join(LEVEL)}")
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > LONGEST_FILE:
            print(f"note: {path.relative_to(root)} has {len(lines)} lines; past {LONGEST_FILE} a file is two files")
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            why = fault(parts, match.group(1)) if match else None
            if why:
                faults.append(f"{path.relative_to(root)}:{number}: {why}: {match.group(1)}")
    for path in sorted((root / "include").rglob("*.h*")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1).split("/")[0] in LEVEL:
                faults.append(f"{path.relative_to(root)}:{number}: a public header may not include {match.group(1)}")
    return faults


def self_test():
    bad = {
        "src/base/a.h": '#include "graph/graph.h"',
        "src/graph/a.h": '#  include "ops/registry.h"',
        "src/plan/a.cpp": '#include "backends/backend.h"',
        "src/nn/a.cpp": '#include "data/loader.h"',
        "src/formats/a.cpp": '#include "data/loader.h"',
        "src/ops/a.cpp": '#include "stoker/stoker.hpp"',
        "src/backends/cpu/a.cpp": '#include "backends/null/null.h"',
        "src/backends/a.h": '#include "backends/cpu/cpu.h"',
        "src/elsewhere/a.cpp": "",
        "include/stoker/a.hpp": '#include "base/shape.h"',
    }
    good = {
        "src/base/a.h": '#include "base/shape.h"\n#include "stoker/error.hpp"\n#include <vector>',
        "src/data/a.cpp": '#include "formats/idx.h"\n#include "base/file.h"',
        "src/backends/cpu/a.cpp": '#include "backends/backend.h"\n#include "backends/cpu/kernel.h"\n#include "plan/plan.h"',
        "src/cli/a.cpp": '#include "stoker/stoker.hpp"\n#include "run/session.h"\n#include "CLI/CLI.hpp"',
        "include/stoker/a.hpp": '#include "stoker/error.hpp"',
    }
    for files, expected in ((bad, 1), (good, 0)):
        for name, text in files.items():
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True)
                path.write_text(text + "\n", encoding="utf-8")
                faults = check(pathlib.Path(folder))
                if len(faults) != expected:
                    sys.exit(f"{name} with {text!r}: expected {expected} fault(s), found {faults}")
    print(f"{len(bad)} bad files were noticed and {len(good)} good ones let through")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    faults = check(pathlib.Path(sys.argv[1]))
    if faults:
        sys.exit("\n".join(faults))
    print("every include points leftwards")


if __name__ == "__main__":
    main()
