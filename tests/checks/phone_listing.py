#!/usr/bin/env python3
"""phone_listing.py ROOT: checks tools/phones' reader of listings and its conditions on short listings with known figures."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tools/phones"))
import listing
import rules

# An outer loop around an inner one with 2 + 4 multiply-adds, a load of 4 words and an image load of 4; one spill.
ADRENO = """
MESA: info: decl_function __wrapped_gemm () (entrypoint)
MESA: info: Native code for unnamed CL shader
MESA: info: l2:
MESA: info: mov.u32u32 r0.w, c12.x
MESA: info: l3:
MESA: info: ldg.u32 r12.y, g[r11.x], 4
MESA: info: isaml (f32)(xyzw)r11.x, r10.z, r3.w, s#0, t#0
MESA: info: (rpt3)mad.f32 r0.x, (r)r1.x, r2.x, (r)r0.x
MESA: info: mad.f32 r4.x, r1.x, r2.x, r4.x
MESA: info: mad.f32 r4.y, r1.x, r2.x, r4.y
MESA: info: (rpt1)nop
MESA: info: jump #l3
MESA: info: stp.u32 p[r1.x], r0.x, 1
MESA: info: jump #l2
MESA: info: ; CL prog 1/1: 20 instr, 2 nops, 18 non-nops, 1 mov, 0 cov, 40 dwords
MESA: info: ; CL prog 1/1: 0 last-baryf, 0 last-helper, 0 half, 14 full, 16 constlen
"""
MALI = """
decl_function __wrapped_sum () (entrypoint)
block0 {
   r0 = IADD_IMM.i32 u256, index:0
} -> block1
block1 {
   r2 = LOAD.i128 r4, r5, byte_offset:0
   r0 = FMA.f32 r2, r2, r0
   NOP
   BRANCHZ.i16.eq u256, u256 -> block1
} -> block1 block2 from block0
SHADER-DB: MESA_SHADER_KERNEL shader: 36 inst, 4.0 cycles, 24 quadwords, 1 threads, 1 loops, 2:3 spills:fills
"""


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"expected {wanted}\n   found {found}")


def main():
    adreno = listing.read(ADRENO)["gemm"]
    expect(adreno, listing.Figures("gemm", 20, 14, spills=1, loop=11, mads=6, loads=2, words=8))
    mali = listing.read(MALI)["sum"]
    expect(mali, listing.Figures("sum", 36, 1, spills=5, loop=3, mads=1, loads=1, words=4))
    variant = rules.Variant(pathlib.Path("single.sum.00.cl"), "single", "sum", {}, ["mlp"], mali)
    expect([fault.split(": ")[1] for fault in rules.faults("mali-g57", variant)], ["5 spills", "half occupancy"])
    expect(len(rules.dense_faults(adreno)), 2)  # 6 of 11 are multiply-adds, and 6 for 8 words; loads are wide
    print("listings are read as they are")


if __name__ == "__main__":
    main()
