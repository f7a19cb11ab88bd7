# The OpenCL devices that tests see: the system's (PoCL) and Intel's runtime, if scripts/install_intel_opencl has been run.
# Tests have caches of their own, so that no tuning or self-test of the user's decides what they do. Adds to `environment`.
#
# The loader takes one folder of .icd files, so both stand in one; it passes over a library that is not there, so nothing
# has to be configured again when Intel's runtime is installed later.
set(vendors ${CMAKE_CURRENT_BINARY_DIR}/opencl-vendors)
file(REMOVE_RECURSE ${vendors})
file(MAKE_DIRECTORY ${vendors}/all ${vendors}/system ${vendors}/intel)
file(GLOB system_vendors /etc/OpenCL/vendors/*.icd)
foreach(vendor IN LISTS system_vendors)
  cmake_path(GET vendor FILENAME name)
  file(CREATE_LINK ${vendor} ${vendors}/all/${name} SYMBOLIC)
  file(CREATE_LINK ${vendor} ${vendors}/system/${name} SYMBOLIC)
endforeach()
set(cache_folder $ENV{XDG_CACHE_HOME})
if(NOT cache_folder)
  set(cache_folder $ENV{HOME}/.cache)
endif()
# Sanitized builds check our side of the calls; one driver is enough for that.
if(plain)
  foreach(folder all intel)
    file(WRITE ${vendors}/${folder}/intel.icd ${cache_folder}/stoker/intel-opencl/lib/libintelocl.so)
  endforeach()
endif()

# PoCL keeps what it compiled by the kernel's text. One folder for all presets: asan need not compile again what dev has.
list(APPEND environment
  "OCL_ICD_VENDORS=${vendors}/all/"
  "POCL_CACHE_DIR=${PROJECT_SOURCE_DIR}/build/pocl-cache"
  "STOKER_CACHE_DIR=${CMAKE_CURRENT_BINARY_DIR}/cache"
  "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/opencl_leaks.txt:print_suppressions=0")
# clang 14's LeakSanitizer guesses where a loaded library's thread-local memory lies, and may crash on a wrong guess.
list(APPEND environment "ASAN_OPTIONS=intercept_tls_get_addr=0")
# Thread sanitizer cannot see into the drivers' threads, and qemu would run a driver for Arm that is not installed: there
# the library is not found, and what needs a device says that it skips.
if(emulated OR STOKER_SANITIZE MATCHES "thread")
  list(APPEND environment "STOKER_OPENCL_LIBRARY=none")
endif()

# The tests that compile most run once for each driver, side by side. PoCL keeps what it compiled by itself; asked for it,
# it compiles every kernel once more, which doubles the time: there our cache of programs has a file for a folder, and
# nothing is asked for. Intel's runtime keeps nothing, and has a cache of ours.
set(for_each_driver "^(backend|opencl_(conv2d|gemm|invariants|window))_test$")
set(without_programs ${CMAKE_CURRENT_BINARY_DIR}/cache-without-programs)
file(WRITE ${without_programs}/programs "")
set(environment_of_system "OCL_ICD_VENDORS=${vendors}/system/" "STOKER_CACHE_DIR=${without_programs}")
set(environment_of_intel "OCL_ICD_VENDORS=${vendors}/intel/")
