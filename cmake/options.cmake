# SPDX-License-Identifier: Apache-2.0
# options.cmake: what own code is compiled with, as one interface target: at_options. Users' programs get none of it.

option(ATTUNE_WERROR "Treat warnings as errors" OFF)
set(ATTUNE_SANITIZE "" CACHE STRING "Sanitizers: empty, address,undefined or thread")
set_property(CACHE ATTUNE_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")

add_library(at_options INTERFACE)
target_compile_features(at_options INTERFACE c_std_17)
target_compile_definitions(at_options INTERFACE _GNU_SOURCE $<$<BOOL:${ATTUNE_WITH_CUDA}>:AT_WITH_CUDA>)
target_include_directories(at_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated")
target_include_directories(at_options SYSTEM INTERFACE "${ATTUNE_XXHASH_INCLUDE_DIR}")
target_compile_options(at_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  $<$<BOOL:${ATTUNE_WERROR}>:-Werror>)

# A project around this one may have no build type; its own files are then compiled as it wants, attune's for speed.
if(NOT PROJECT_IS_TOP_LEVEL)
  target_compile_options(at_options INTERFACE $<$<CONFIG:>:-O3>)
  target_compile_definitions(at_options INTERFACE $<$<CONFIG:>:NDEBUG>)
endif()

# Instrumented kernels take gcc half their time to say where a debugger finds their variables: not worth it. What checks the sizes of
# objects takes a tenth, and AddressSanitizer finds the same.
if(ATTUNE_SANITIZE)
  target_compile_options(at_options INTERFACE -fsanitize=${ATTUNE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<C_COMPILER_ID:GNU>:-fno-var-tracking>)
  if(ATTUNE_SANITIZE MATCHES "address")
    target_compile_options(at_options INTERFACE -fno-sanitize=object-size)
  endif()
  target_link_options(at_options INTERFACE -fsanitize=${ATTUNE_SANITIZE})
else()
  target_link_options(at_options INTERFACE -Wl,-z,defs)
endif()

# Where the linker puts a loop moved its time by up to 14 %, with the same source: whatever grew before it moved it. So the library's
# functions begin at lines of the instruction cache, and their loops at halves of one. Not for what is never timed.
include(CheckCCompilerFlag)
set(ATTUNE_ALIGN)
if(NOT ATTUNE_SANITIZE)
  foreach(flag -falign-functions=64 -falign-loops=32)
    string(MAKE_C_IDENTIFIER "ATTUNE_HAS${flag}" has)
    check_c_compiler_flag("${flag}" ${has})
    if(${has})
      list(APPEND ATTUNE_ALIGN "${flag}")
    endif()
  endforeach()
endif()

# For loops that have to become vectors in any build, with the bits that the source says. Sanitizers check scalar ones as well, and
# compile them in half the time.
set(ATTUNE_VECTOR_OPTIONS -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(ATTUNE_SANITIZE)
  list(REMOVE_ITEM ATTUNE_VECTOR_OPTIONS -O3)
endif()
set(ATTUNE_AVX2 -mavx2 -mfma -mf16c)
set(ATTUNE_AVX512 ${ATTUNE_AVX2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
set(ATTUNE_AVX512_VNNI ${ATTUNE_AVX512} -mavx512vnni)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ATTUNE_AVX2)
  set(ATTUNE_AVX512)
  set(ATTUNE_AVX512_VNNI)
endif()
