#!/usr/bin/env python3
"""Runs clang-tidy over the files of src/ that compile_commands.json names, in parallel.

    tidy.py build/dev/compile_commands.json [FILE...]

A file that was clean stays remembered (build/tidy-cache) until it, a header of ours that it includes, its flags or
.clang-tidy changes. Kernels are read for one instruction set only: the others are the same text.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy-cache"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
EXTRA = ["-Wno-unknown-warning-option", "-Wno-unused-command-line-argument", "-DHWY_COMPILE_ONLY_STATIC"]


def our_headers(path, seen):
    """Adds to `seen` the file and every header of this repository that it includes, at any depth."""
    if path in seen:
        return
    seen.add(path)
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for folder in (ROOT / "src", ROOT / "include", path.parent):
            if (folder / name).is_file():
                our_headers((folder / name).resolve(), seen)
                break


def flags_of(command):
    """The compiler's flags, without launcher, compiler, input and output."""
    words = shlex.split(command)
    start = next(i for i, word in enumerate(words) if word.startswith("-"))
    flags, skip = [], False
    for word in words[start:]:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-MF", "-MT", "-MQ"):
            skip = True
        elif word not in ("-MD", "-MMD"):
            flags.append(word)
    return flags


def key_of(path, flags, version):
    headers = set()
    our_headers(path, headers)
    digest = hashlib.sha256(" ".join(flags + EXTRA + [version]).encode())
    for name in sorted(headers) + [ROOT / ".clang-tidy"]:
        digest.update(name.read_bytes())
    return digest.hexdigest()


def tidy(path, flags, key):
    if (CACHE / key).exists():
        return path, None
    done = subprocess.run(["clang-tidy", "--quiet", str(path), "--"] + flags + EXTRA, capture_output=True, text=True)
    if done.returncode == 0:
        (CACHE / key).touch()
        return path, None
    return path, done.stdout + "\n".join(line for line in done.stderr.splitlines() if "warnings generated" not in line)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    jobs = []
    for entry in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if ROOT / "src" in path.parents and (not wanted or path in wanted):
            flags = flags_of(entry["command"])
            jobs.append((path, flags, key_of(path, flags, version)))
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in concurrent.futures.as_completed([pool.submit(tidy, *job) for job in jobs]):
            path, output = done.result()
            if output is not None:
                faults += 1
                print(f"{path.relative_to(ROOT)}:\n{output}", flush=True)
    print(f"clang-tidy: {len(jobs)} files, {faults} with findings")
    sys.exit(faults != 0)


if __name__ == "__main__":
    main()
