/* SPDX-License-Identifier: Apache-2.0
 * watch.h: `attune devices --watch`. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "tools/cli/cli.h"

/* Prints what every device tells of itself, a line for each, again and again with `interval_s` seconds between, until
 * SIGINT or SIGTERM, or `rounds` times (0: without end). An exit code. */
int cli_watch(double interval_s, long rounds, bool json);

#endif
