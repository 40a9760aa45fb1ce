/* SPDX-License-Identifier: Apache-2.0
 * profile_report.h: a tuner's profile as a table and as JSON, and where the environment wants it. */
#ifndef AT_PROFILE_REPORT_H
#define AT_PROFILE_REPORT_H

#include "tuning/tuner/tuner.h"

/* The tuner or the process ends: writes its profile where ATTUNE_PROFILE said when it was created. */
void at_profile_end(attune_tuner *tuner);

#endif
