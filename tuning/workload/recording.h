/* SPDX-License-Identifier: Apache-2.0
 * recording.h: mode record: every call is counted where calls are counted anyway (call_cache.h), and what is new is
 * written to the recorded workload at a miss now and then, and at the end. Nothing is written twice. */
#ifndef AT_RECORDING_H
#define AT_RECORDING_H

#include "tuning/tuner/tuner.h"

/* The calls so far are not recorded: the mode begins now. */
void at_recording_begin(attune_tuner *tuner);

/* A problem that was just met, so that it is known even if the process ends badly; true: one call of it is written. */
bool at_recording_first(attune_tuner *tuner, attune_device *device, const char *problem);

/* Writes what is not written yet. What cannot be written now stays for the next time, and the log says why. */
void at_recording_flush(attune_tuner *tuner);

/* As above, where there is no next time: what cannot be written is lost, which is an error. */
void at_recording_flush_last(attune_tuner *tuner);

/* As at_recording_flush, if the last time was a while ago. */
void at_recording_flush_sometimes(attune_tuner *tuner);

#endif
