# Finds what Stoker is built with. Where there are no packages (Android), Highway is built from STOKER_HIGHWAY_SOURCE and
# the header-only libraries are taken from STOKER_JSON_INCLUDE, STOKER_CLI11_INCLUDE and STOKER_OPENCL_INCLUDE.
set(STOKER_HIGHWAY_SOURCE "" CACHE PATH "Highway's source folder, where no package of it is installed")
set(STOKER_JSON_INCLUDE "" CACHE PATH "The folder that holds nlohmann/json.hpp, where no package of it is installed")
set(STOKER_CLI11_INCLUDE "" CACHE PATH "The folder that holds CLI/CLI.hpp, where no package of it is installed")
set(STOKER_OPENCL_INCLUDE "" CACHE PATH "The folder that holds CL/cl.h, where no package of it is installed")

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

if(STOKER_HIGHWAY_SOURCE)
  set(HWY_ENABLE_TESTS OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_EXAMPLES OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_CONTRIB OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_INSTALL ON CACHE BOOL "" FORCE)
  add_subdirectory(${STOKER_HIGHWAY_SOURCE} highway)
  if(NOT TARGET hwy::hwy)
    add_library(hwy::hwy ALIAS hwy)
  endif()
else()
  find_package(hwy REQUIRED)
endif()

function(stoker_header_library target package include_dir)
  if(include_dir)
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} SYSTEM INTERFACE ${include_dir})
  else()
    find_package(${package} REQUIRED)
    set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL ON)
  endif()
endfunction()

stoker_header_library(nlohmann_json::nlohmann_json nlohmann_json "${STOKER_JSON_INCLUDE}")
if(STOKER_CLI)
  stoker_header_library(CLI11::CLI11 CLI11 "${STOKER_CLI11_INCLUDE}")
endif()

# OpenCL's headers only: the library is loaded at run time.
find_path(stoker_opencl_dir CL/cl_ext.h HINTS ${STOKER_OPENCL_INCLUDE} REQUIRED NO_CACHE)
add_library(stoker_opencl_headers INTERFACE)
if(NOT stoker_opencl_dir STREQUAL "/usr/include")
  target_include_directories(stoker_opencl_headers SYSTEM INTERFACE ${stoker_opencl_dir})
endif()
