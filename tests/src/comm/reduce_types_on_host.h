/* SPDX-License-Identifier: Apache-2.0
 * reduce_types_on_host.h: reduce_on_host.h for every type of one OP. Included once for each: it has no guard. */
#define DTYPE 1
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 2
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 3
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 4
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 5
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 6
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 7
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 8
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 9
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 10
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 11
#include "tests/src/comm/reduce_on_host.h"
#define DTYPE 12
#include "tests/src/comm/reduce_on_host.h"
#undef OP
