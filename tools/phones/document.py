"""Prints tables of kernels' figures: as text, and as docs/phone-kernels.md."""
import rules

COLUMNS = ["instructions", "registers", "spills", "loop", "mads", "loads", "words"]

HEAD = """# Our kernels on phones' GPUs

Written by `tools/phones/table --stoker build/release/stoker --write docs/phone-kernels.md`; do not edit.

Every kernel as the zoo's nets use it (training with SGD and Adam, and evaluation), with the seeds of that GPU's family,
compiled to the GPU's own instruction set by **Mesa's compilers, which are not the vendors'**: what Qualcomm's and Arm's
compilers make of the same source may be better or worse. Instruction set and register file are the same, so a kernel that
spills here, loads word by word or spends its loop on addresses is worth mending. Nothing here was run on a phone.

| | |
|---|---|
| r | Adreno: 128-bit registers a work-item; the fewer, the more waves are in flight |
| thr | Mali: 2 is full occupancy (at most 32 registers), 1 is half. Asked of pointwise, reduction and normalisation kernels; not of `stages` with CHAIN=1, which run in one work-group: most of these are at half |
| i | instructions in all |
| loop | of the innermost loop with the most multiply-adds: instructions, multiply-adds (m), loads from memory and images (l), the 32-bit words that these bring (w) |
| spill | instructions that spill to memory or fill from it; named only where there are any |
"""


def cell(gpu, variant):
    if variant is None:
        return ""
    if variant.figures is None:
        return "**does not build**" if variant.fault else "?"
    f = variant.figures
    parts = [f"{f.registers} {'thr' if gpu.startswith('mali') else 'r'}", f"{f.instructions} i"]
    if f.loop:
        parts.append(f"loop {f.loop}: {f.mads} m, {f.loads} l, {f.words} w")
    if f.spills:
        parts.append(f"**{f.spills} spill**")
    return ", ".join(parts)


def families(found):
    """{(file, kernel): {gpu: [variants]}}; variants differ between GPUs, for their seeds do."""
    table = {}
    for gpu, variants in found.items():
        for variant in variants:
            table.setdefault((variant.file, variant.kernel), {}).setdefault(gpu, []).append(variant)
    return dict(sorted(table.items()))


def summary(found):
    lines = ["## In short", "", "| GPU | kernels | with spills | miss their conditions | most registers / half occupancy |",
             "|---|---:|---:|---:|---:|"]
    for gpu, variants in found.items():
        figures = [variant.figures for variant in variants if variant.figures]
        worst = (sum(f.registers < 2 for f in figures) if gpu.startswith("mali")
                 else max((f.registers for f in figures), default=0))
        missing = sum(bool(rules.faults(gpu, variant)) for variant in variants)
        lines.append(f"| {gpu} | {len(variants)} | {sum(f.spills > 0 for f in figures)} | {missing} | {worst} |")
    return "\n".join(lines)


def markdown(found):
    parts = [HEAD, summary(found), ""]
    for (file, kernel), by_gpu in families(found).items():
        parts += [f"## {file}.cl: {kernel}", "", "| GPU | variant | nets | figures |", "|---|---|---|---|"]
        for gpu, variants in by_gpu.items():
            for variant in variants:
                parts.append(f"| {gpu} | {variant.describe()} | {', '.join(variant.nets)} | {cell(gpu, variant)} |")
        parts.append("")
    return "\n".join(parts)


def text(found):
    lines = []
    for (file, kernel), by_gpu in families(found).items():
        lines.append(f"{file}.cl: {kernel}")
        for gpu, variants in by_gpu.items():
            for variant in variants:
                lines.append(f"    {gpu:11} {cell(gpu, variant):60} {variant.describe()}")
    return "\n".join(lines)
