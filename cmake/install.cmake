# SPDX-License-Identifier: Apache-2.0
# install.cmake: libraries, headers, command, manual page, and what find_package and pkg-config read.

include(CMakePackageConfigHelpers)

# Two export sets: a program of the shared library must not need what only the static one is linked with.
install(TARGETS attune EXPORT attuneShared
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS attune_static EXPORT attuneStatic ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS attune_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY include/attune DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
# The Fortran module as source: each compiler has module files of its own.
install(FILES bindings/fortran/attune.f90 DESTINATION "${CMAKE_INSTALL_DATADIR}/attune")
set(ATTUNE_FORTRAN_FILE "${CMAKE_INSTALL_DATADIR}/attune/attune.f90")
install(FILES docs/attune.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
# Completion, made by the command from its own table, where the shells look for it.
if(NOT CMAKE_CROSSCOMPILING AND NOT ATTUNE_SANITIZE)
  set(completions)
  foreach(shell IN ITEMS bash zsh fish)
    set(script "${PROJECT_BINARY_DIR}/completions/attune.${shell}")
    add_custom_command(OUTPUT "${script}" COMMAND attune_cli completion ${shell} > "${script}" DEPENDS attune_cli VERBATIM)
    list(APPEND completions "${script}")
  endforeach()
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/completions")
  add_custom_target(attune_completions ALL DEPENDS ${completions})
  install(FILES "${PROJECT_BINARY_DIR}/completions/attune.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME attune)
  install(FILES "${PROJECT_BINARY_DIR}/completions/attune.zsh" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" RENAME _attune)
  install(FILES "${PROJECT_BINARY_DIR}/completions/attune.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
# The pages that README.md names lie where it looks for them.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.c" PATTERN "*.h")
install(DIRECTORY bench/results DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench" FILES_MATCHING PATTERN "*.md" PATTERN "*.txt" PATTERN "*.svg")
install(DIRECTORY bench/workloads DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench" FILES_MATCHING PATTERN "*.csv")
install(FILES tuning/store/schema.sql DESTINATION "${CMAKE_INSTALL_DOCDIR}/tuning")
install(FILES tools/compare/results/results.sql DESTINATION "${CMAKE_INSTALL_DOCDIR}/tools/compare")
install(CODE "
  set(source_dir \"${PROJECT_SOURCE_DIR}\")
  set(include_dir \"${CMAKE_INSTALL_INCLUDEDIR}\")
  set(doc_dir \"${CMAKE_INSTALL_DOCDIR}\")
  foreach(folder IN ITEMS include_dir doc_dir)
    if(NOT IS_ABSOLUTE \"\${\${folder}}\")
      set(\${folder} \"\${CMAKE_INSTALL_PREFIX}/\${\${folder}}\")
    endif()
    cmake_path(ABSOLUTE_PATH \${folder} NORMALIZE)
    set(\${folder} \"\$ENV{DESTDIR}\${\${folder}}\")
  endforeach()
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_pages.cmake\")")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attune")
install(EXPORT attuneShared FILE attuneSharedTargets.cmake NAMESPACE attune:: DESTINATION "${package_dir}")
install(EXPORT attuneStatic FILE attuneStaticTargets.cmake NAMESPACE attune:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/attuneConfig.cmake.in "${PROJECT_BINARY_DIR}/attuneConfig.cmake" INSTALL_DESTINATION "${package_dir}"
  PATH_VARS ATTUNE_FORTRAN_FILE)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attuneConfig.cmake" "${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake" DESTINATION "${package_dir}")

# pkg-config: relative to the .pc file, so that the prefix may be moved.
file(RELATIVE_PATH ATTUNE_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" ATTUNE_PC_PREFIX "${ATTUNE_PC_PREFIX}")
file(RELATIVE_PATH ATTUNE_PC_FORTRAN "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_DATADIR}/attune/attune.f90")
set(ATTUNE_PC_LIBS_PRIVATE "-pthread -ldl -lm")
# SQLite by its own .pc file, which knows where it is and what it needs; without one, by its file.
pkg_check_modules(ATTUNE_SQLITE QUIET sqlite3)
if(ATTUNE_SQLITE_FOUND AND ATTUNE_SQLITE_VERSION VERSION_EQUAL "${SQLite3_VERSION}")
  set(ATTUNE_PC_REQUIRES_PRIVATE "sqlite3")
else()
  set(ATTUNE_PC_REQUIRES_PRIVATE "")
  list(GET SQLite3_LIBRARIES 0 sqlite_file)
  string(PREPEND ATTUNE_PC_LIBS_PRIVATE "${sqlite_file} ")
endif()
if(ATTUNE_WITH_CUDA)
  string(PREPEND ATTUNE_PC_LIBS_PRIVATE "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt ")
endif()
configure_file(cmake/attune.pc.in "${PROJECT_BINARY_DIR}/attune.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/attune.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
