"""Reads what Mesa's compilers for Adreno (ir3) and Mali (Bifrost, Valhall) print of a kernel: see Figures.

Mesa compiles each kernel twice, for any work-group and for the usual one: the last listing counts, but for spills, which
neither may have.
"""
import dataclasses
import re


@dataclasses.dataclass
class Figures:
    kernel: str
    instructions: int = 0
    registers: int = 0  # Adreno: of 128 bits a work-item, the fewer the more waves. Mali: threads, 2 is full occupancy
    spills: int = 0  # instructions that spill to memory or fill from it
    # The innermost loop with the most multiply-adds; zeros where there is no loop.
    loop: int = 0  # instructions
    mads: int = 0
    loads: int = 0  # from memory and images
    words: int = 0  # of 32 bits that these bring


def repeats(line):
    """An Adreno instruction with (rpt3) is executed four times."""
    match = re.search(r"\(rpt(\d)\)", line)
    return 1 + int(match[1]) if match else 1


def adreno_loop(body):
    figures = {"loop": sum(map(repeats, body)), "mads": 0, "loads": 0, "words": 0}
    for line in body:
        if re.search(r"\bmad\.f(32|16)\b", line):
            figures["mads"] += repeats(line)
        elif re.search(r"\b(isaml?|sam|saml)\b", line):
            components = re.search(r"\(([xyzw]+)\)r", line)
            figures["loads"] += 1
            figures["words"] += len(components[1]) if components else 4
        elif re.search(r"\b(ldg|ldg\.a|ldib(\.b)?|ldl|ldp)\.", line):
            count = re.search(r",\s*(\d+)\s*$", line)
            figures["loads"] += 1
            figures["words"] += int(count[1]) if count else 1
    return figures


def adreno_loops(code):
    labels = {}
    for at, line in enumerate(code):
        if re.fullmatch(r"l\d+:", line):
            labels[line[:-1]] = at
        jump = re.search(r"\b(?:jump|br\w*|b[a-z]+)\b.*#(l\d+)", line)
        if jump and jump[1] in labels:
            yield adreno_loop([x for x in code[labels[jump[1]]:at + 1] if not x.endswith(":")])


def mali_loops(code):
    """Blocks "block2 { ... } -> block1 block3": one that goes back to an earlier block closes a loop."""
    blocks, current = {}, None
    for line in code:
        begin = re.match(r"block(\d+) \{", line)
        if begin:
            current = int(begin[1])
            blocks[current] = []
        elif line.startswith("}") and current is not None:
            successors = [int(n) for n in re.findall(r"block(\d+)", line.split("from")[0])]
            for back in (n for n in successors if n <= current):
                yield mali_loop([x for n in range(back, current + 1) for x in blocks.get(n, [])])
            current = None
        elif current is not None:
            blocks[current].append(line)


def mali_loop(body):
    figures = {"loop": 0, "mads": 0, "loads": 0, "words": 0}
    for line in body:
        operation = re.search(r"\b([A-Z][A-Z0-9_]{2,})(\.\S+)?", line)
        if not operation or operation[1] == "NOP":
            continue
        figures["loop"] += 1
        if operation[1] in ("FMA", "FMA_RSCALE"):
            figures["mads"] += 1
        elif operation[1] == "LOAD":
            bits = re.search(r"\.i(\d+)", line)
            figures["loads"] += 1
            figures["words"] += max(int(bits[1]) // 32, 1) if bits else 1
        elif operation[1] in ("LD_ATTR_TEX", "LD_TEX", "LD_TEX_IMM", "LD_BUFFER", "TEXC", "TEX_FETCH", "TEX_SINGLE"):
            figures["loads"] += 1
            figures["words"] += 4
    return figures


def hottest(loops):
    """Of nested loops the outer one has the inner one's multiply-adds, too: the shorter is the inner."""
    best = {}
    for loop in loops:
        if (loop["mads"], -loop["loop"]) > (best.get("mads", -1), -best.get("loop", 0)):
            best = loop
    return best


def read(text):
    """The kernels of one program's listing, by name."""
    found, name, code = {}, None, []
    for line in text.splitlines():
        line = line.removeprefix("MESA: info: ").strip()
        begins = re.match(r"decl_function __wrapped_(\w+)", line)
        if begins:
            name, code = begins[1], []
            continue
        if name is None:
            continue
        counted = re.match(r"; CL prog \S+ (\d+) instr", line)
        used = re.match(r"; CL prog .* (\d+) full", line)
        mali = re.match(r"SHADER-DB: \w+ shader: (\d+) inst.* (\d+) threads.* (\d+):(\d+) spills", line)
        spilled = found[name].spills if name in found else 0
        if line.startswith(("Native code", "block0 {")):
            code = []
        if counted:
            found[name] = Figures(name, int(counted[1]), spills=spilled, **hottest(adreno_loops(code)))
        elif used:
            found[name].registers = int(used[1])
            found[name].spills += sum(bool(re.search(r"\b(stp|ldp)\.", x)) for x in code)
        elif mali:
            found[name] = Figures(name, int(mali[1]), int(mali[2]), spilled + int(mali[3]) + int(mali[4]),
                                  **hottest(mali_loops(code)))
        code.append(line)
    return found
