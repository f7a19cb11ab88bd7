#!/usr/bin/env python3
"""Runs clang-tidy over the files of src/ that compile_commands.json names, in parallel.

    tidy.py build/dev/compile_commands.json [FILE...]

A file that was clean stays remembered (build/tidy-cache) until it, a header of ours that it includes, its flags or
.clang-tidy changes. Kernels are read for one instruction set only: the others are the same text.

Most of the time goes into the headers that files share, so files are read joined (unity.py), and one by one only where that
brings a finding.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import unity

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy-cache"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
Job = collections.namedtuple("Job", "path flags key")
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


def clang_tidy(path, flags, options=()):
    """None if there is nothing to say about the file, otherwise what there is."""
    command = ["clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *options, str(path), "--", *flags, *EXTRA]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return done.stdout + "\n".join(line for line in done.stderr.splitlines() if "warnings generated" not in line)


def tidy(number, group):
    """Reads a group of jobs; gives the findings by file."""
    if len(group) > 1:
        path = CACHE / f"joined_{os.getpid()}_{number}.cpp"
        path.write_text("".join(f'#include "{job.path}"\n' for job in group), encoding="utf-8")
        clean = clang_tidy(path, group[0].flags, ["--checks=-bugprone-suspicious-include"]) is None
        path.unlink()
        if clean:
            for job in group:
                (CACHE / job.key).touch()
            return []
    findings = []
    for job in group:
        output = clang_tidy(job.path, job.flags)
        if output is None:
            (CACHE / job.key).touch()
        else:
            findings.append((job.path, output))
    return findings


def groups_of(jobs):
    """Jobs with the same flags, joined as unity.py joins files; the longest first."""
    by_flags = collections.defaultdict(dict)
    for job in jobs:
        by_flags[tuple(job.flags)][job.path] = job
    groups = [[some[path] for path in group] for some in by_flags.values() for group in unity.joined(sorted(some))]
    return sorted(groups, key=lambda group: -sum(job.path.stat().st_size for job in group))


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
            jobs.append(Job(path, flags, key_of(path, flags, version)))
    faults = 0
    groups = groups_of(job for job in jobs if not (CACHE / job.key).exists())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = [pool.submit(tidy, number, group) for number, group in enumerate(groups)]
        for done in concurrent.futures.as_completed(running):
            for path, output in done.result():
                faults += 1
                print(f"{path.relative_to(ROOT)}:\n{output}", flush=True)
    print(f"clang-tidy: {len(jobs)} files, {faults} with findings")
    sys.exit(faults != 0)


if __name__ == "__main__":
    main()
