#!/usr/bin/env python3
"""Alternates Stoker and PyTorch on the same nets with the same threads and prints a Markdown table.

Each figure comes from processes of their own, one after the other, in rounds; a net's step time is the median over the
rounds of each process's median. PyTorch counts with the fastest of its variants. Memory is the whole process's peak for
Stoker and the growth over the bare `import torch` for PyTorch. The floor is the step's flops at the measured FMA peak.
Called by bench/vs_pytorch, which makes the environment for PyTorch.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# name: (batch, steps, steps with --quick, PyTorch's variants)
IMAGES = {"default": [], "channels_last": ["--channels-last"]}
NETS = {
    "mlp": (32, 2000, 300, {"default": [], "fused SGD": ["--fused"]}),
    "lenet5": (64, 200, 30, IMAGES),
    "mobilenetv2-32": (64, 8, 3, IMAGES),
    "resnet18-32": (64, 6, 2, IMAGES),
}
MB = 1e6


def run(command, threads):
    """The command's output and its peak RSS in bytes."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed with status {process.returncode}: {' '.join(command)}\n{output}")
    return output, usage.ru_maxrss * 1024


def run_stoker(arguments, net, batch, steps):
    command = [arguments.stoker, "bench", "--models", net, "--devices", "cpu", "--batch", str(batch), "--threads",
               str(arguments.threads), "--steps", str(steps), "-o", "json"]
    output, peak = run(command, arguments.threads)
    rows = [row for row in json.loads(output) if row["model"] == net]
    if len(rows) != 1:
        sys.exit(f"expected one row for {net}, but `{' '.join(command)}` printed\n{output}")
    return {"ms": rows[0]["step_ms"]["median"], "peak": peak, "params": rows[0]["params"]}


def run_pytorch(arguments, net, batch, steps, options):
    command = [arguments.python, str(HERE / "pytorch_step.py"), net, "--batch", str(batch), "--threads",
               str(arguments.threads), "--steps", str(steps)] + options
    row = json.loads(run(command, arguments.threads)[0])
    return {"ms": row["step_ms"]["median"], "peak": row["growth_bytes"], "flops": row["step_flops"],
            "torch": row["torch"].split("+")[0]}


def median_of(runs, key):
    return statistics.median(run[key] for run in runs)


def compare(arguments, net):
    batch, steps, quick_steps, variants = NETS[net]
    steps = quick_steps if arguments.quick else steps
    stoker, pytorch = [], {name: [] for name in variants}
    for number in range(arguments.rounds):
        print(f"{net}: round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
        stoker.append(run_stoker(arguments, net, batch, steps))
        for name, options in variants.items():
            pytorch[name].append(run_pytorch(arguments, net, batch, steps, options))
    best = min(variants, key=lambda name: median_of(pytorch[name], "ms"))
    return {
        "net": net, "batch": batch, "variant": best, "flops": pytorch[best][0]["flops"],
        "torch": pytorch[best][0]["torch"],
        "stoker_ms": median_of(stoker, "ms"), "pytorch_ms": median_of(pytorch[best], "ms"),
        "stoker_peak": max(run["peak"] for run in stoker), "pytorch_peak": max(run["peak"] for run in pytorch[best]),
    }


def fma_peak(arguments):
    """GFLOP/s of independent multiply-adds in registers, all threads together."""
    output, _ = run([arguments.fma_peak, str(arguments.threads)], arguments.threads)
    return float(output.split()[0])


def table(rows, peak, arguments):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), "unknown CPU")
    lines = [
        f"{cpu}, {arguments.threads} threads, fp32; forward + backward + SGD with momentum; PyTorch {rows[0]['torch']}, "
        f"median of {arguments.rounds} alternating rounds. FMA peak measured in the same run: {peak:.0f} GFLOP/s.", "",
        "| net | batch | Stoker ms | PyTorch ms | (its best) | speed ratio | Stoker peak RSS | PyTorch's growth | "
        "flop floor ms | Stoker at | PyTorch at |",
        "|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        floor = row["flops"] / peak / 1e6
        lines.append(
            f"| {row['net']} | {row['batch']} | {row['stoker_ms']:.4g} | {row['pytorch_ms']:.4g} | {row['variant']} | "
            f"**{row['pytorch_ms'] / row['stoker_ms']:.2f}x** | {row['stoker_peak'] / MB:.0f} MB | "
            f"{row['pytorch_peak'] / MB:.0f} MB | {floor:.3g} | {floor / row['stoker_ms']:.0%} | "
            f"{floor / row['pytorch_ms']:.0%} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch")
    parser.add_argument("--stoker", default=str(ROOT / "build/release/stoker"))
    parser.add_argument("--fma-peak", default=str(ROOT / "build/release/bench_fma_peak"))
    parser.add_argument("--nets", default=",".join(NETS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=0, help="default: 3, and 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="few steps, one round: for a first look")
    parser.add_argument("--markdown", metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    nets = arguments.nets.split(",")
    for net in nets:
        if net not in NETS:
            parser.error(f"unknown net {net}; there are {', '.join(NETS)}")
    peak = fma_peak(arguments)
    text = table([compare(arguments, net) for net in nets], peak, arguments)
    print(text, end="")
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
