/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.h: what a measurement is valid for, in one line of text:
 *
 *   NVIDIA H200; sm_90; 132 processors; 51200 KiB cache; cc 9.0; driver 13000; attune 1; with cublas 1 cublas-13.1.0;
 *   cublaslt 1 cublaslt-130100; cublaslt_padded 1 cublaslt-130100 nvrtc-13.0 jit-1
 *
 * Up to "; with " it is the device's part: the device, its driver, and how attune measures. The rest are the
 * implementations of an operation that there were, each with its version and what it depends on (at_implementation.
 * depends). On the host the first of them is how many CPU threads the search might use: "; with threads 2;
 * host_blocked 1 ...". What is fastest with two is not so with one or with 64, nor is the default that it was compared
 * with: winners of each number are kept side by side. Three rules follow from it, and from nothing else:
 *
 * - A stored winner holds where the device's part is the same and its own implementation has the same version, with the
 *   same versions of what its configuration depends on here, and as many CPU threads. Other implementations, libraries
 *   and operations do not matter: what is new or changed there makes no other winners misses.
 * - A winner that holds may be compared with too little: the default's time, or that of another implementation, is of
 *   an older library or version, or an implementation has come since. It runs on, the words in attune_decision.changed
 *   say what is another, and the next tuning run (attune tune, attune_tune) measures the problem again, with the winner
 *   in the race. Dispatch never does so by itself, in no mode.
 * - Where several winners of a problem hold, those compared with exactly what is here come first, then the latest.
 *
 * What a fingerprint without implementations does not know counts as unchanged. */
#ifndef AT_FINGERPRINT_H
#define AT_FINGERPRINT_H

#include "tuning/op/registry.h"
#include "tuning/store/decision.h"

/* Raise it when the way attune measures changes so that old times mean nothing. What changes in an implementation
 * raises that one's version. */
#define AT_MEASURE_VERSION 1

#define AT_FINGERPRINT_CHARS 4096
#define AT_DIFFERENCE_CHARS 512

/* The device's part: model and features, processors of a GPU, cache, capability, driver, way of measuring. How many
 * CPUs the process may use is not in it: calls are recorded, and problems leased, whatever that is. */
attune_status at_fingerprint(attune_device *device, char *out, size_t size);

/* The whole, with the implementations that the ops have for the device. Opens every library they depend on. */
attune_status at_fingerprint_whole(attune_device *device, const at_op *const *ops, int op_count, char *out,
                                   size_t size);

/* How many characters of a fingerprint are the device's part. And its implementations: what comes after "; with ", ""
 * where there are none. */
size_t at_fingerprint_device_chars(const char *fingerprint);
const char *at_fingerprint_implementations(const char *fingerprint);

/* How many CPU threads the search might use, on the host; 0: not known, which counts as the same. */
#define AT_FINGERPRINT_THREADS "threads "
int at_fingerprint_threads(const char *fingerprint);

/* Adds the implementations, if any, to a device's part; false: they do not fit. */
bool at_fingerprint_join(char *fingerprint, size_t size, const char *implementations);

/* The device's part and the winner's own implementation alone, for people. */
void at_fingerprint_own(const char *fingerprint, const attune_decision *winner, char *out, size_t size);

/* --- fingerprint_difference.c --- */

/* In which parts the devices of two fingerprints differ, in words: "driver 12080 there, 13000 here; ..." into out; how
 * many parts. */
int at_fingerprint_difference(const char *there, const char *here, char *out, size_t size);

/* The same of a stored winner's own implementation and what is here of it: "cublaslt_padded's nvrtc 13.0 there, 13.1
 * here; ...", and of the number of CPU threads; 0: it holds. Opens what the configuration depends on, no more. */
int at_winner_difference(const at_op *op, attune_device *device, const char *fingerprint, const attune_decision *winner,
                         char *out, size_t size);

/* Of the implementation alone, whatever the number of threads. */
int at_implementation_difference(const at_op *op, attune_device *device, const char *fingerprint,
                                 const attune_decision *winner, char *out, size_t size);

/* The same of all that a search here would compare: the default, and every implementation that can do the problem and
 * is no mere fallback. */
int at_rivals_difference(const at_op *op, const void *problem, attune_device *device, const char *fingerprint,
                         const attune_decision *winner, char *out, size_t size);

#endif
