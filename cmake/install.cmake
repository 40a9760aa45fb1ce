# SPDX-License-Identifier: Apache-2.0
# install.cmake: libraries, headers, command, manual page, and what find_package and pkg-config read.

include(CMakePackageConfigHelpers)

# Two export sets: a program of the shared library must not need what only the static one is linked with.
install(TARGETS attune EXPORT attuneShared
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS attune_static EXPORT attuneStatic ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS attune_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY include/attune DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(FILES docs/attune.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
# The pages that README.md names lie where it looks for them.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.c" PATTERN "*.h")
install(DIRECTORY bench/results DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench" FILES_MATCHING PATTERN "*.md" PATTERN "*.txt" PATTERN "*.svg")
install(DIRECTORY bench/workloads DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench" FILES_MATCHING PATTERN "*.csv")
install(FILES tuning/schema.sql DESTINATION "${CMAKE_INSTALL_DOCDIR}/tuning")
install(FILES tuning/gate/results.sql tuning/gate/results_2.sql DESTINATION "${CMAKE_INSTALL_DOCDIR}/tuning/gate")
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
configure_package_config_file(cmake/attuneConfig.cmake.in "${PROJECT_BINARY_DIR}/attuneConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attuneConfig.cmake" "${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake" DESTINATION "${package_dir}")

# pkg-config: relative to the .pc file, so that the prefix may be moved.
file(RELATIVE_PATH ATTUNE_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" ATTUNE_PC_PREFIX "${ATTUNE_PC_PREFIX}")
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
