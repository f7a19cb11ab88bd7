#!/usr/bin/env python3
"""Builds OpenCL programs on the first device and creates their kernels; to be called through tools/phones/run.

    compile.py FILE.cl... [-- build options]

A file's kernels are those that its first line names, "// kernels: gemm_nn gemm_tn", or all. Before each file a line
"@@ FILE" is printed, after it "@@ built", or "@@ failed" and the compiler's log; between them stand the listings that the
compilers print (see run). Python and ctypes, so that nothing has to be built.
"""
import ctypes
import os
import sys

DEVICE_TYPE_ALL = 0xFFFFFFFF
PROGRAM_BUILD_LOG = 0x1183
OPTIONS = ["-cl-std=CL1.2", "-cl-mad-enable"]


def open_device(cl):
    platform, device, error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    if cl.clGetPlatformIDs(1, ctypes.byref(platform), None) or cl.clGetDeviceIDs(
            platform, ctypes.c_ulong(DEVICE_TYPE_ALL), 1, ctypes.byref(device), None):
        sys.exit("no OpenCL device")
    cl.clCreateContext.restype = ctypes.c_void_p
    context = cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(error))
    if error.value:
        sys.exit(f"clCreateContext: {error.value}")
    return ctypes.c_void_p(context), device


def build_log(cl, program, device):
    log = ctypes.create_string_buffer(1 << 16)
    cl.clGetProgramBuildInfo(program, device, PROGRAM_BUILD_LOG, ctypes.c_size_t(len(log)), log, None)
    return log.value.decode(errors="replace")


def build(cl, context, device, source, options):
    """None if all went well, else what did not."""
    error, text = ctypes.c_int(), ctypes.c_char_p(source)
    program = ctypes.c_void_p(cl.clCreateProgramWithSource(context, 1, ctypes.byref(text), None, ctypes.byref(error)))
    if error.value:
        return f"clCreateProgramWithSource: {error.value}"
    status = cl.clBuildProgram(program, 1, ctypes.byref(device), " ".join(options).encode(), None, None)
    if status:
        return f"clBuildProgram: {status}\n{build_log(cl, program, device)}"
    first = source.split(b"\n", 1)[0]
    if first.startswith(b"// kernels:"):
        for name in first.split()[2:]:
            cl.clCreateKernel(program, name, ctypes.byref(error))
            if error.value:
                return f"clCreateKernel {name.decode()}: {error.value}"
        return None
    kernels, count = (ctypes.c_void_p * 256)(), ctypes.c_uint()
    status = cl.clCreateKernelsInProgram(program, 256, kernels, ctypes.byref(count))
    return f"clCreateKernelsInProgram: {status}" if status else None


def say(line):
    # Descriptor 1 is also what the compilers write to; Python's own buffer would come out of order.
    os.write(1, (line + "\n").encode())


def main():
    arguments, options = sys.argv[1:], OPTIONS
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], OPTIONS + arguments[at + 1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, ctypes.c_size_t(0))  # 1: by lines
    cl = ctypes.CDLL("libOpenCL.so.1")
    cl.clCreateProgramWithSource.restype = ctypes.c_void_p
    cl.clCreateKernel.restype = ctypes.c_void_p
    context, device = open_device(cl)
    failed = False
    for path in arguments:
        say(f"@@ {path}")
        with open(path, "rb") as file:
            fault = build(cl, context, device, file.read(), options)
        libc.fflush(None)
        say("@@ built" if fault is None else f"@@ failed\n{fault}")
        failed = failed or fault is not None
    os._exit(1 if failed else 0)  # the fake drivers do not shut down cleanly


if __name__ == "__main__":
    main()
