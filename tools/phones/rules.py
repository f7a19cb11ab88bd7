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
STREAMING = ("single", "stages", "gemm_reduce")


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
        text = path.read_text(encoding="utf-8").partition("\n")[2]
        defines = {}
        for name, value in re.findall(r"#define (\w+) (-?\d+)\n", re.match(r"(#define \w+ -?\d+\n)*", text)[0]):
            defines[name] = int(value)
        # What was rendered: which operands have a prologue, how many sums the epilogue takes.
        for name, value in re.findall(r"^#define ([A-Z]+_(?:PLAIN|SUMS)) (\d+)", text, flags=re.M):
            defines.setdefault(name, int(value))
        return Variant(path, file, kernel, defines)

    def describe(self):
        words = [f"{name}={value}" for name, value in self.defines.items() if not name.endswith(("_PLAIN", "_SUMS"))]
        prologues = [name[0] for name, value in self.defines.items() if name.endswith("_PLAIN") and name[0] != "Y" and not value]
        if prologues:
            words.append(f"prologue of {' and '.join(prologues)}")
        sums = next((value for name, value in self.defines.items() if name.endswith("_SUMS")), 0)
        if sums:
            words.append(f"{sums} sum{'s' if sums > 1 else ''}")
        return " ".join(words)


def is_streaming(variant):
    # A chain of small stages runs in one work-group: there is nothing to be in flight beside it.
    return variant.file.startswith(STREAMING) and not variant.defines.get("CHAIN")


def faults(gpu, variant):
    """What the variant misses on this GPU, one line each."""
    where = f"{gpu} {variant.path.name} ({', '.join(variant.nets)}; {variant.describe()})"
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
    """A product of plain operands whose channels are divisible by 4: GEMM, 3x3 convolution and its gradients."""
    defines = variant.defines
    if any(name in ("A_PLAIN", "B_PLAIN") and not value for name, value in defines.items()):
        return False
    if variant.file == "gemm_direct":
        return bool(defines["VEC"])
    if variant.file == "conv2d_tile":
        return defines["TAPS"] == 3 and bool(defines["VEC_K"]) and bool(defines["VEC_N"])
    if variant.file == "conv2d_weight_tile":
        return bool(defines["VEC_M"]) and bool(defines["VEC_N"])
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
