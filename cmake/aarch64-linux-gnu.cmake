# Cross compiling with Debian's g++-aarch64-linux-gnu and arm64 packages by multiarch; programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Phones before 2022 have NEON only, so that is what everything runs with; tests of kernels run once more with SVE, at
# 256 bits as on a Neoverse V1 so that its lanes differ from NEON's. No -L: the arm64 packages stand in the usual places,
# and mixing in the cross compiler's own libc hangs at the first thread.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu max,sve=off)
set(STOKER_SVE_EMULATOR qemu-aarch64 -cpu max,sve256=on)
