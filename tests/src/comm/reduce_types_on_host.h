/* SPDX-License-Identifier: Apache-2.0
 * reduce_types_on_host.h: reduce_on_host.h for every type of one OP. Included once for each: it has no guard. */
#define DTYPE 1
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 2
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 3
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 4
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 5
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 6
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 7
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 8
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 9
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 10
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 11
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#define DTYPE 12
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#undef OP
