/* SPDX-License-Identifier: Apache-2.0
 * pass_portable.c: the loops of an epilogue's pass, for any CPU. */
#define PASS at_pass_portable
#include "ops/gemm/epilogue/pass_template.h"
