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
  pkg_check_modules(ATTUNE_JANSSON IMPORTED_TARGET jansson)
endif()
if(NOT ATTUNE_JANSSON_FOUND)
  message(FATAL_ERROR "the attune command needs jansson, found by pkg-config (Debian, Ubuntu: pkg-config libjansson-dev; or run scripts/setup)")
endif()

set(ATTUNE_LIBRARIES SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS} m)

# CUDA: only the runtime is linked, its static form, so that no library of CUDA must be there when a program starts. cuBLAS, NVRTC and the
# driver's own libraries (NVML) are opened when a CUDA device first needs them; to build, their headers are enough.
set(ATTUNE_CUDA AUTO CACHE STRING "CUDA device: AUTO (when the toolkit is found), ON (must be found), OFF")
set_property(CACHE ATTUNE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ATTUNE_CUDA_MINIMUM 12.4)
string(TOUPPER "${ATTUNE_CUDA}" ATTUNE_CUDA_WANTED)
set(ATTUNE_WITH_CUDA OFF)
if(NOT ATTUNE_CUDA_WANTED MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ATTUNE_CUDA is ${ATTUNE_CUDA}; should be AUTO, ON or OFF")
elseif(NOT ATTUNE_CUDA_WANTED STREQUAL "OFF")
  find_package(CUDAToolkit ${ATTUNE_CUDA_MINIMUM} QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static) # kernels compiled at run time are loaded by it; not every 12.x has it
    include(CheckSymbolExists)
    include(CheckIncludeFile)
    set(CMAKE_REQUIRED_LIBRARIES CUDA::cudart_static)
    check_symbol_exists(cudaLibraryLoadData cuda_runtime_api.h ATTUNE_HAVE_CUDA_LIBRARIES)
    check_include_file(cublas_v2.h ATTUNE_HAVE_CUBLAS_HEADER)
    check_include_file(cublasLt.h ATTUNE_HAVE_CUBLASLT_HEADER)
    check_include_file(nvrtc.h ATTUNE_HAVE_NVRTC_HEADER)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NOT ATTUNE_HAVE_CUDA_LIBRARIES)
      message(STATUS "CUDA: the runtime of toolkit ${CUDAToolkit_VERSION} has no cudaLibraryLoadData; a later one is needed")
    endif()
  endif()
  if(ATTUNE_HAVE_CUDA_LIBRARIES AND ATTUNE_HAVE_CUBLAS_HEADER AND ATTUNE_HAVE_CUBLASLT_HEADER AND ATTUNE_HAVE_NVRTC_HEADER)
    set(ATTUNE_WITH_CUDA ON)
    list(APPEND ATTUNE_LIBRARIES CUDA::cudart_static)
    message(STATUS "CUDA: toolkit ${CUDAToolkit_VERSION}")
  elseif(ATTUNE_CUDA_WANTED STREQUAL "ON")
    message(FATAL_ERROR "ATTUNE_CUDA is ON, but no CUDA toolkit ${ATTUNE_CUDA_MINIMUM} or later with the static runtime (and cudaLibraryLoadData in it) and "
                        "the headers of cublas, cublasLt and nvrtc was found; set CUDAToolkit_ROOT to its folder, or ATTUNE_CUDA to AUTO or OFF")
  else()
    message(STATUS "CUDA: no toolkit ${ATTUNE_CUDA_MINIMUM} or later, building for the host only")
  endif()
else()
  message(STATUS "CUDA: off")
endif()
