# SPDX-License-Identifier: Apache-2.0
# embed.cmake: turns a text file into a C header with one array. Included, it gives attune_embed(); run with -P, it does the work.
#
#   attune_embed(TARGET INPUT HEADER SYMBOL)
#
# makes <build>/generated/HEADER with `static const char SYMBOL[]`, terminated, whenever INPUT changes, before TARGET is compiled.
# Character constants, not a string literal: C promises only 4095 characters of one.

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(READ "${INPUT}" bytes HEX)
  get_filename_component(name "${INPUT}" NAME)
  string(REPEAT "[0-9a-f]" 32 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  file(WRITE "${OUTPUT}" "/* Made from ${name}; change that file. */\nstatic const char ${SYMBOL}[] = {\n${bytes}\n0};\n")
  return()
endif()

set(ATTUNE_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(attune_embed target input header symbol)
  get_filename_component(input "${input}" ABSOLUTE)
  set(output "${PROJECT_BINARY_DIR}/generated/${header}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${output}" "-DSYMBOL=${symbol}" -P "${ATTUNE_EMBED_SCRIPT}"
    DEPENDS "${input}" "${ATTUNE_EMBED_SCRIPT}"
    COMMENT "Embedding ${header}"
    VERBATIM)
  string(MAKE_C_IDENTIFIER "${header}" name)
  add_custom_target(attune_embed_${name} DEPENDS "${output}")
  add_dependencies(${target} attune_embed_${name})
endfunction()
