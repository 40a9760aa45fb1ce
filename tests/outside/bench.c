/* SPDX-License-Identifier: Apache-2.0
 * bench.c: the smallest benchmark program; started by hand it lists its case. */
#include <attune/tools.h>

static attune_status run(void *arg, attune_stream *stream) {
  (void)arg, (void)stream;
  return ATTUNE_OK;
}

int main(int argc, char **argv) {
  const attune_bench_case nothing = {.size = sizeof(attune_bench_case), .name = "nothing", .run = run};
  attune_bench *bench;
  if (attune_bench_create(&bench) != ATTUNE_OK || attune_bench_add(bench, &nothing) != ATTUNE_OK) return 1;
  return attune_bench_main(bench, argc, argv);
}
