"""What is asked of a kernel on a phone GPU, and what a dumped program says of itself."""
import dataclasses
import pathlib
import re

# Of the hot loop on Adreno, for GEMM and 3x3 convolutions on plain operands with channels divisible by 4. A plain 4x8
# kernel with one operand from an image has 53 % multiply-adds.
LEAST_MADS_OF_LOOP = 0.60
LEAST_WORDS_A_LOAD = 4
LEAST_MADS_A_WORD = 2.6
# Kernels that wait for memory: on Mali every thread that fits in helps.
STREAMING = ("pointwise", "reduction", "reduce", "norm", "softmax", "stages", "movement")


@dataclasses.dataclass
class Variant:
    """A program as a net uses it, dumped as FILE.KERNEL.HASH.cl."""
    path: pathlib.Path
    file: str
    kernel: str
    defines: dict
    nets: list = dataclasses.field(default_factory=list)
    figures: object = None
    fault: str = ""

    @staticmethod
    def read(path):
        file, kernel, _ = path.name.removesuffix(".cl").rsplit(".", 2)
        text = path.read_text(encoding="utf-8").partition("// kernels/")[0]
        defines = dict(re.findall(r"^#define (\w+) (-?\d+)$", text, flags=re.M))
        return Variant(path, file, kernel, {name: int(value) for name, value in defines.items()})


def is_streaming(variant):
    return variant.file.startswith(STREAMING)


def faults(gpu, variant):
    """What the variant misses on this GPU, one line each."""
    where = f"{gpu} {variant.path.name} ({', '.join(variant.nets)})"
    if variant.fault:
        return [f"{where}: does not build: {variant.fault[:300]}"]
    if variant.figures is None:
        return [f"{where}: no listing"]
    found = []
    if variant.figures.spills:
        found.append(f"{where}: {variant.figures.spills} spills")
    if gpu.startswith("mali") and is_streaming(variant) and variant.figures.registers < 2:
        found.append(f"{where}: half occupancy")
    if gpu.startswith("adreno") and is_dense(variant):
        found += [f"{where}: {fault}" for fault in dense_faults(variant.figures)]
    return found


def is_dense(variant):
    return False


def dense_faults(figures):
    found = []
    if figures.mads < LEAST_MADS_OF_LOOP * figures.loop or not figures.mads:
        found.append(f"{figures.mads} of the loop's {figures.loop} instructions are multiply-adds")
    if figures.words < LEAST_WORDS_A_LOAD * figures.loads:
        found.append(f"{figures.loads} loads bring {figures.words} words")
    if figures.mads < LEAST_MADS_A_WORD * figures.words:
        found.append(f"{figures.mads} multiply-adds for {figures.words} loaded words")
    return found
