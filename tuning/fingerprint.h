/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.h: the identity that a measurement is valid for. */
#ifndef AT_FINGERPRINT_H
#define AT_FINGERPRINT_H

#include "tuning/op.h"

/* Raise it when attune's own kernels or the way it measures change so that old times mean nothing. */
#define AT_CODEGEN_VERSION 1

/* In which parts two fingerprints differ, in words: "driver 12080 there, 13000 here; ..." into out; how many parts. */
int at_fingerprint_difference(const char *there, const char *here, char *out, size_t size);

/* One line: device model and capability, processors of a GPU, cache, driver, the libraries of the ops, codegen version.
 * How many CPUs the process may use is not in it: a stored winner of N threads holds where N are (winner.c). */
attune_status at_fingerprint(attune_device *device, const at_op *const *ops, int op_count, char *out, size_t size);

#endif
