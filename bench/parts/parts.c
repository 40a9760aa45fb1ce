/* SPDX-License-Identifier: Apache-2.0
 * parts.c: bench_parts: allocator, random numbers, graphs, the hot path and the host's interpreter beside their peers, in turns:
 *   attune bench --program build/release/bench/bench_parts --filter random/host --markdown random.md
 * By hand it lists the cases. */
#include "bench/parts/parts.h"

int main(int argc, char **argv) {
  attune_bench *bench = NULL;
  bench_check(attune_bench_create(&bench), "attune_bench_create");
  for (int i = 0; i < attune_device_count(); i++) {
    attune_device *device = NULL;
    bench_check(attune_device_at(&device, i), "attune_device_at");
    parts_alloc(bench, device);
    parts_random(bench, device);
  }
  parts_blocked(bench);
  parts_graph(bench);
  parts_hot(bench);
  parts_interpret(bench);
  return attune_bench_main(bench, argc, argv);
}
