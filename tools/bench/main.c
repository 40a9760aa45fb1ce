/* SPDX-License-Identifier: Apache-2.0
 * main.c: the main of a program that has cases. It alone speaks to people: by the contract of attune_bench_main. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "src/base/support.h"
#include "tools/bench/protocol.h"
#include "tools/bench/suite.h"

static int list_cases(const attune_bench *bench) {
  for (size_t i = 0; i < bench->count; i++) {
    const attune_bench_case *c = &bench->entries[i].shown;
    printf("%s\t%s\t%s%s\n", c->name, c->device ? attune_device_name(c->device) : "-",
           c->flags & ATTUNE_BENCH_COLD ? "cold" : "hot", c->flags & ATTUNE_BENCH_GRAPH ? "+graph" : "");
  }
  return fflush(stdout) == 0 ? 0 : 1;
}

static int serve(attune_bench *bench, const char *program, const char *number) {
  int64_t fd = -1;
  attune_status status = ATTUNE_OK;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a case that never ends must not outlive the runner */
  if (at_parse_i64(&fd, number) && fd >= 0 && fd <= INT32_MAX)
    status = attune_bench_serve(bench, (int)fd);
  else
    status = AT_INVALID("%s is \"%.20s\"; should be a file descriptor", AT_BENCH_ARGUMENT, number);
  if (status == ATTUNE_OK) return 0;
  fprintf(stderr, "%s: %s\n", program, attune_last_message());
  return 1;
}

int attune_bench_main(attune_bench *bench, int argc, char **argv) {
  const char *program = argc > 0 && argv && argv[0] ? argv[0] : "attune_bench_main",
             *last = argc > 1 && argv && argv[argc - 1] ? argv[argc - 1] : "";
  if (!bench) {
    fprintf(stderr, "%s: bench is NULL; should be given\n", program);
    return 1;
  }
  const bool asked = strncmp(last, AT_BENCH_ARGUMENT, strlen(AT_BENCH_ARGUMENT)) == 0;
  const int result = asked ? serve(bench, program, last + strlen(AT_BENCH_ARGUMENT)) : list_cases(bench);
  attune_bench_destroy(bench);
  return result;
}
