/* SPDX-License-Identifier: Apache-2.0
 * gate_peers.h: the rules by which other tools call a case slower, on the same times. */
#ifndef BENCH_GATE_PEERS_H
#define BENCH_GATE_PEERS_H

#include "tools/compare/results/results.h"

typedef enum peer { PEER_GOOGLE_BENCHMARK, PEER_ASV, PEER_CRITERION, PEERS } peer;
extern const char *const peer_names[PEERS];

/* 1: slower, -1: faster, 0: neither. A repetition is the mean of a visit's samples, as a tool's own repetition would
 * tell. */
int peer_verdict(peer which, const gate_case *base, const gate_case *head);

#endif
