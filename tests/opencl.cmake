# The OpenCL devices that tests see: the system's (PoCL) and Intel's runtime, if scripts/install_intel_opencl has been run.
# Tests have caches of their own, so that no tuning or self-test of the user's decides what they do. Adds to `environment`.
#
# The loader takes one folder of .icd files, so both stand in one; it passes over a library that is not there, so nothing
# has to be configured again when Intel's runtime is installed later.
set(vendors ${CMAKE_CURRENT_BINARY_DIR}/opencl-vendors)
file(REMOVE_RECURSE ${vendors})
file(MAKE_DIRECTORY ${vendors})
file(GLOB system_vendors /etc/OpenCL/vendors/*.icd)
foreach(vendor IN LISTS system_vendors)
  cmake_path(GET vendor FILENAME name)
  file(CREATE_LINK ${vendor} ${vendors}/${name} SYMBOLIC)
endforeach()
set(cache_folder $ENV{XDG_CACHE_HOME})
if(NOT cache_folder)
  set(cache_folder $ENV{HOME}/.cache)
endif()
# Sanitized builds check our side of the calls; one driver is enough for that.
if(plain)
  file(WRITE ${vendors}/intel.icd ${cache_folder}/stoker/intel-opencl/lib/libintelocl.so)
endif()

# PoCL keeps what it compiled by the kernel's text. One folder for all presets: asan need not compile again what dev has.
list(APPEND environment
  "OCL_ICD_VENDORS=${vendors}/"
  "POCL_CACHE_DIR=${PROJECT_SOURCE_DIR}/build/pocl-cache"
  "STOKER_CACHE_DIR=${CMAKE_CURRENT_BINARY_DIR}/cache"
  "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/opencl_leaks.txt:print_suppressions=0")
# Thread sanitizer cannot see into the drivers' threads, and qemu would run a driver for Arm that is not installed: there
# the library is not found, and what needs a device says that it skips.
if(emulated OR STOKER_SANITIZE MATCHES "thread")
  list(APPEND environment "STOKER_OPENCL_LIBRARY=none")
endif()
