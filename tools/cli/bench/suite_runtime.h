/* SPDX-License-Identifier: Apache-2.0
 * suite_runtime.h: the suite "runtime" of `attune bench`: what the runtime itself costs. */
#ifndef CLI_SUITE_RUNTIME_H
#define CLI_SUITE_RUNTIME_H

#include <attune/attune.h>
#include <attune/tools.h>

#include <stdbool.h>

/* Adds its cases for `device`, named "runtime/...", to `bench`, once in a process. `tuner` and `device` outlive the
 * bench. False: the thread's message says why. */
bool suite_runtime_add(attune_bench *bench, attune_tuner *tuner, attune_device *device);

#endif
