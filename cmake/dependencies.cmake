# SPDX-License-Identifier: Apache-2.0
# dependencies.cmake: what attune is built with. Sets ATTUNE_WITH_CUDA and ATTUNE_LIBRARIES (what the library is linked with).

find_package(Threads REQUIRED)
find_package(SQLite3 3.37)
if(NOT SQLite3_FOUND)
  message(FATAL_ERROR "attune needs SQLite 3.37 or later with its header (Debian, Ubuntu: libsqlite3-dev; or run scripts/setup)")
endif()

# xxHash is compiled in from its header; no library is linked.
find_path(ATTUNE_XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(ATTUNE_XXHASH_INCLUDE_DIR)
if(NOT ATTUNE_XXHASH_INCLUDE_DIR)
  message(FATAL_ERROR "attune needs xxhash.h (Debian, Ubuntu: libxxhash-dev; or run scripts/setup)")
endif()

find_package(PkgConfig)
if(PkgConfig_FOUND)
  pkg_check_modules(JANSSON IMPORTED_TARGET jansson)
endif()
if(NOT JANSSON_FOUND)
  message(FATAL_ERROR "the attune command needs jansson, found by pkg-config (Debian, Ubuntu: pkg-config libjansson-dev; or run scripts/setup)")
endif()

set(ATTUNE_LIBRARIES SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS} m)

# cuBLAS and its kin are linked; the driver's own libraries (NVML) are opened at run time, so that a program starts without a driver.
set(ATTUNE_CUDA AUTO CACHE STRING "CUDA device: AUTO (when the toolkit is found), ON (must be found), OFF")
set_property(CACHE ATTUNE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ATTUNE_CUDA_MINIMUM 12.4)
string(TOUPPER "${ATTUNE_CUDA}" ATTUNE_CUDA_WANTED)
set(ATTUNE_WITH_CUDA OFF)
if(NOT ATTUNE_CUDA_WANTED MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ATTUNE_CUDA is ${ATTUNE_CUDA}; should be AUTO, ON or OFF")
elseif(NOT ATTUNE_CUDA_WANTED STREQUAL "OFF")
  find_package(CUDAToolkit ${ATTUNE_CUDA_MINIMUM} QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart) # kernels compiled at run time are loaded by it; not every 12.x has it
    include(CheckSymbolExists)
    set(CMAKE_REQUIRED_LIBRARIES CUDA::cudart)
    check_symbol_exists(cudaLibraryLoadData cuda_runtime_api.h ATTUNE_HAVE_CUDA_LIBRARIES)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NOT ATTUNE_HAVE_CUDA_LIBRARIES)
      message(STATUS "CUDA: the runtime of toolkit ${CUDAToolkit_VERSION} has no cudaLibraryLoadData; a later one is needed")
    endif()
  endif()
  if(ATTUNE_HAVE_CUDA_LIBRARIES AND TARGET CUDA::cudart AND TARGET CUDA::cublas AND TARGET CUDA::cublasLt AND TARGET CUDA::nvrtc)
    set(ATTUNE_WITH_CUDA ON)
    # CMake's own CUDA::nvrtc would link libcuda.so as well, and then no program would start without a driver. NVRTC needs none.
    get_target_property(nvrtc_location CUDA::nvrtc IMPORTED_LOCATION)
    add_library(attune::nvrtc UNKNOWN IMPORTED)
    set_target_properties(attune::nvrtc PROPERTIES IMPORTED_LOCATION "${nvrtc_location}")
    list(APPEND ATTUNE_LIBRARIES CUDA::cudart CUDA::cublas CUDA::cublasLt attune::nvrtc)
    message(STATUS "CUDA: toolkit ${CUDAToolkit_VERSION}")
  elseif(ATTUNE_CUDA_WANTED STREQUAL "ON")
    message(FATAL_ERROR "ATTUNE_CUDA is ON, but no CUDA toolkit ${ATTUNE_CUDA_MINIMUM} or later with cudart (and cudaLibraryLoadData in it), cublas, cublasLt and nvrtc was "
                        "found; set CUDAToolkit_ROOT to its folder, or ATTUNE_CUDA to AUTO or OFF")
  else()
    message(STATUS "CUDA: no toolkit ${ATTUNE_CUDA_MINIMUM} or later, building for the host only")
  endif()
else()
  message(STATUS "CUDA: off")
endif()
