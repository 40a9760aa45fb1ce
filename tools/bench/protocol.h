/* SPDX-License-Identifier: Apache-2.0
 * protocol.h: how `attune bench` (the runner) and a process that has cases (the worker) talk over a socket.
 *
 * The runner starts the worker with the socket's end as one more argument, AT_BENCH_ARGUMENT and the descriptor's
 * number. Lines of text, words separated by one tab; in words that hold any text a tab, a newline and a backslash are
 * written \t, \n and \\. The worker speaks first; each request is answered before the next. Numbers are decimal, times
 * nanoseconds.
 *
 *   worker                                                     runner
 *   attune-bench  VERSION  attune's version
 *                                                              list
 *   case  INDEX  NAME  DEVICE  MODE  BYTES  FLOPS  DTYPE   (one a case; DEVICE "-" for the calling thread, MODE "hot"
 * or
 *                                                           "cold", then "+graph"; DTYPE "-" without flops; behind it
 *   end                                                     PEER_OF, the name of the case before that it is a peer of)
 *                                                              open  INDEX  SAMPLE_NS  SEED
 *   opened  CALLS                                          (set up, warmed up; CALLS a sample, for about SAMPLE_NS;
 * SEED: what
 *                                                           operands' places are drawn from, 0 if it is left out: a
 * pair
 *                                                           that has the same one differs by its builds alone)
 *                                                              sample  COUNT
 *   sample  START  NS  CPU_NS                              (COUNT lines; START by CLOCK_MONOTONIC, the others a call;
 * CPU_NS
 *   end  CLOCK_MHZ  THROTTLED                               is the process's CPU time; clock 0: not known, throttled 0
 * or 1)
 *                                                              close
 *   closed                                                 (torn down)
 *                                                              quit
 *
 * In place of any answer's last line: failed  MESSAGE: the case is not open any more. One case is open at a time. After
 * a request that is none of these the worker says so by "failed", and ends. */
#ifndef AT_BENCH_PROTOCOL_H
#define AT_BENCH_PROTOCOL_H

#define AT_BENCH_ARGUMENT "--attune-bench-worker="
#define AT_BENCH_PROTOCOL 1
#define AT_BENCH_LINE 4096 /* bytes of the longest line, with its newline */

#endif
