/* SPDX-License-Identifier: Apache-2.0
 * team.h: threads that are started once, and sleep between runs. */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include <stdbool.h>

enum { TEAM_MOST = 64 };

typedef struct team team;
team *team_open(int threads, bool (*work)(void *arg, int thread), void *arg);
/* Returns once all are done: true if all did well. */
bool team_run(team *t);
void team_close(team *t); /* NULL does nothing */
int team_cpus(void);      /* that this process may use */

#endif
