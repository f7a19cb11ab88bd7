# How every file of ours is compiled: the interface target stoker_compile. Only this file holds flags.
add_library(stoker_compile INTERFACE)

# Warnings are errors with the compilers that we test with; another one's new warnings must not stop a newcomer.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13) OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(werror -Werror)
endif()
# GCC 12 warns of its own std::string (PR105651), and of designated initialisers that leave defaults.
target_compile_options(stoker_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow ${werror} -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  -fno-math-errno -ffunction-sections -fdata-sections)
if(NOT APPLE)
  target_link_options(stoker_compile INTERFACE -Wl,--gc-sections)
endif()
# A static library goes into somebody's app and must not add to what the app exports. A shared one exports everything:
# the tests link to its insides.
if(NOT BUILD_SHARED_LIBS)
  target_compile_options(stoker_compile INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden)
endif()

# Highway compiles a kernel once for each target that stays enabled. On x86: the baseline, AVX2 and AVX-512 (SSSE3 and
# SSE4 pass nobody by; bits 0-7 are the finer kinds of AVX-512, whose additions fp32 does not use). On Arm: NEON and SVE
# of any width (bits 24-26 are SVE2 and the two fixed widths).
set(disabled "(HWY_SSSE3|HWY_SSE4|0xFF|0x7000000)")
# Sanitized builds check our logic, not each instruction set again: AVX2 alone is a third of the kernels' compile time.
if(STOKER_SANITIZE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(disabled "(HWY_SSSE3|HWY_SSE4|HWY_AVX3|0xFF|0x7000000)")
  target_compile_options(stoker_compile INTERFACE -march=haswell)
endif()
target_compile_definitions(stoker_compile INTERFACE "HWY_DISABLED_TARGETS=${disabled}")

# AddressSanitizer sees null pointers and accesses out of bounds by itself; checking each pointer for null and for wrapping
# around as well doubles the compile time, or triples it (SIMD kernels).
if(STOKER_SANITIZE)
  target_compile_options(stoker_compile INTERFACE
    -fsanitize=${STOKER_SANITIZE} -fno-sanitize=null,object-size,pointer-overflow,vptr
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(stoker_compile INTERFACE -fsanitize=${STOKER_SANITIZE})
endif()

# stoker_compile_quickly(TARGET): for what spends its time elsewhere, optimised less in the builds that tests run in. -O1 has
# the warnings that come from optimising.
function(stoker_compile_quickly target)
  if(STOKER_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND CMAKE_CXX_FLAGS_RELWITHDEBINFO MATCHES "-O2")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

find_program(STOKER_CCACHE ccache)
mark_as_advanced(STOKER_CCACHE)
if(STOKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STOKER_CCACHE})
endif()

# GCC takes joined files for headers, where a class with members of unnamed namespaces would be a mistake.
if(STOKER_UNITY)
  target_compile_options(stoker_compile INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# stoker_join(LIST): with STOKER_UNITY, puts files that include those of LIST in their place.
function(stoker_join list)
  if(NOT STOKER_UNITY)
    return()
  endif()
  find_program(STOKER_PYTHON python3 REQUIRED)
  mark_as_advanced(STOKER_PYTHON)
  set(script ${PROJECT_SOURCE_DIR}/tools/unity.py)
  execute_process(COMMAND ${STOKER_PYTHON} ${script} ${PROJECT_BINARY_DIR}/unity/${list} ${${list}} OUTPUT_VARIABLE joined
                  COMMAND_ERROR_IS_FATAL ANY)
  # A changed file may have got a name that another one has: then they are joined anew.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${${list}} ${script})
  string(REGEX MATCHALL "[^\n]+" joined "${joined}")
  set(${list} ${joined} PARENT_SCOPE)
endfunction()
