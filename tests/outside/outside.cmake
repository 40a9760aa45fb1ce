# SPDX-License-Identifier: Apache-2.0
# outside.cmake: a program outside of this tree finds the installed library, shared and static, with CUDA and without.

set(outside_environment
  ${environment} "BUILD=set:${PROJECT_BINARY_DIR}" "SOURCE=set:${PROJECT_SOURCE_DIR}" "CC=set:${CMAKE_C_COMPILER}"
  "CMAKE=set:${CMAKE_COMMAND}" "CMAKE_GENERATOR=set:${CMAKE_GENERATOR}" "WITH_CUDA=set:${ATTUNE_WITH_CUDA}")
if(ATTUNE_WITH_FORTRAN)
  list(APPEND outside_environment "FC=set:${CMAKE_Fortran_COMPILER}")
endif()

function(at_outside way work)
  at_register(test_outside_${way} COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/outside/run.sh" ${way} LABELS ${ARGN} build TIMEOUT 300)
  set_tests_properties("${ATTUNE_TEST_PREFIX}test_outside_${way}" PROPERTIES
    ENVIRONMENT_MODIFICATION "${outside_environment};WORK=set:${PROJECT_BINARY_DIR}/tests/${work}")
endfunction()

# Of several builds, the one for AddressSanitizer has no CUDA already; a build by itself that has CUDA builds the library once more.
if(ATTUNE_SANITIZE)
  list(APPEND outside_environment "CFLAGS=set:-fsanitize=${ATTUNE_SANITIZE}" "LDFLAGS=set:-fsanitize=${ATTUNE_SANITIZE}")
  at_outside(without_cuda outside_without_cuda)
  return()
elseif(ATTUNE_WITH_CUDA AND NOT ATTUNE_TEST_PREFIX)
  at_outside(without_cuda outside_without_cuda slow)
endif()

at_outside(install outside)
at_outside(find_package outside)
at_outside(pkg_config outside)
if(once) # it builds the library once more, to see what that does to the project
  at_outside(subproject outside_parent)
endif()
set(fixture "${ATTUNE_TEST_PREFIX}installed")
set_tests_properties("${ATTUNE_TEST_PREFIX}test_outside_install" PROPERTIES FIXTURES_SETUP "${fixture}")
set_tests_properties("${ATTUNE_TEST_PREFIX}test_outside_find_package" "${ATTUNE_TEST_PREFIX}test_outside_pkg_config"
  PROPERTIES FIXTURES_REQUIRED "${fixture}")
