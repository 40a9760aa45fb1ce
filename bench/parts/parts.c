/* SPDX-License-Identifier: Apache-2.0
 * parts.c: bench_parts: allocator, random numbers, graphs, the hot path and the host's interpreter beside their peers,
 * in turns:
 *   attune bench --program build/release/bench/bench_parts --filter random/host --markdown random.md
 * By hand it lists the cases. */
#include "bench/parts/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A case as it was added: as long as the program. */
typedef struct part {
  part_case c;
  team *team;
  void *arg;
} part;

static attune_status set_up(void *arg) {
  part *p = arg;
  const attune_status status = p->c.set_up(p->arg);
  if (status == ATTUNE_OK && p->c.threads) p->team = team_open(p->c.threads, p->c.work, p->arg);
  return status;
}

static attune_status run(void *arg, attune_stream *stream) {
  part *p = arg;
  if (p->c.run) return p->c.run(p->arg, stream);
  return (p->team ? team_run(p->team) : p->c.work(p->arg, 0)) ? ATTUNE_OK : ATTUNE_DEVICE_ERROR;
}

static void tear_down(void *arg) {
  part *p = arg;
  team_close(p->team);
  p->team = NULL;
  p->c.tear_down(p->arg);
}

void parts_add(attune_bench *bench, const part_case *c, const void *arg, size_t size) {
  char name[200];
  part *p = malloc(sizeof *p);
  void *own = malloc(size);
  if (!p || !own) bench_die("no memory for a case");
  *p = (part){.c = *c, .arg = memcpy(own, arg, size)};
  snprintf(name, sizeof name, "%s%s%s", c->peer_of ? c->peer_of : "", c->peer_of ? ": " : "", c->name);
  bench_check(attune_bench_add(bench, &(attune_bench_case){.size = sizeof(attune_bench_case),
                                                           .name = name,
                                                           .device = c->device,
                                                           .set_up = set_up,
                                                           .run = run,
                                                           .tear_down = tear_down,
                                                           .arg = p,
                                                           .bytes = c->bytes,
                                                           .flops = c->flops,
                                                           .dtype = c->dtype,
                                                           .repeats = c->repeats,
                                                           .peer_of = c->peer_of}),
              name);
}

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
