/* SPDX-License-Identifier: Apache-2.0
 * check.h: cmocka, and the checks that every test makes of a call of attune. Include it before all others. */
#ifndef AT_TEST_CHECK_H
#define AT_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <attune/status.h>

/* The call succeeds; else its status and the thread's message are told. */
#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    const attune_status ok_status = (call);                                                                            \
    if (ok_status != ATTUNE_OK) fail_msg("%s: %s: %s", #call, attune_status_string(ok_status), attune_last_message()); \
  } while (0)

/* The call fails with this status. */
#define FAILS(call, status) assert_int_equal((call), (status))

#endif
