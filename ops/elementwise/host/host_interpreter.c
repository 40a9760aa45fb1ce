/* SPDX-License-Identifier: Apache-2.0
 * host_interpreter.c: elementwise on the host by the interpreter: blocks of elements, one vector loop a node. Tunables:
 * the instruction set, threads, elements of a block, and whether outputs are written past the caches. */
#include <string.h>

#include "ops/elementwise/host/host_call.h"
#include "ops/elementwise/host/interpret.h"
#include "src/host/threads.h"
#include "tuning/op/tunables.h"

enum {
  THREAD_BYTES = 128 << 10, /* moved: less is not worth another thread, as a guess */
  STREAM_BYTES = 8 << 20    /* written: the least for which the caches may be passed */
};

typedef struct interpreter_plan {
  at_host_plan host; /* first */
  at_interpreter *program;
  int threads, block, output_count, input_count;
  bool stream;
} interpreter_plan;

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && !at_elementwise_of(problem)->raw;
}

/* ---- configurations ---- */

static const char *const isa_names[] = {"portable", "avx2", "avx512", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                 \
  WORD("isa", isa, NULL, isa_names, 0, "the instruction set")              \
  NUMBER("threads", threads, NULL, 1, 4096, 0, "threads in the team")      \
  NUMBER("block", block, NULL, AT_BLOCK_LEAST, AT_BLOCK_MOST, AT_LEFT_OUT, \
         "elements of a block; left out: as many as fit the cache")        \
  NUMBER("stream", stream, NULL, 1, 1, AT_LEFT_OUT, "1: outputs are written past the caches")

typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

static void add(at_configuration *out, int *count, int max, const at_interpret_isa *isa, choice c) {
  while (isa_names[c.isa + 1] && strcmp(isa_names[c.isa], at_interpret_isa_name(isa)) != 0) c.isa++;
  if (*count < max) *count += at_tunables_add(&tunables, out, *count, &c);
}

static int guess_threads(double bytes) {
  const int most = at_cpu_count();
  const double useful = bytes / THREAD_BYTES;
  return useful < 2 ? 1 : useful < most ? (int)useful : most;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self, (void)device;
  const at_elementwise *p = at_elementwise_of(problem);
  const double bytes = at_elementwise_op.problem->bytes(problem);
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  double written = 0;
  for (int i = 0; i < p->output_count; i++)
    written += (double)at_elementwise_count(p) * (double)attune_dtype_size((attune_dtype)p->dtypes[i]);
  const bool may_stream = written >= STREAM_BYTES;
  const int guess = guess_threads(bytes), most = at_cpu_count();
  static const int blocks[] = {0, 1024, 256};
  int count = 0;
  for (int stream = may_stream; stream >= 0; stream--) add(out, &count, max, isas[0], (choice){0, guess, 0, stream});
  for (int threads = 1; threads <= most; threads = threads < most && 2 * threads > most ? most : 2 * threads)
    for (size_t b = 0; b < AT_COUNT(blocks); b++)
      for (int stream = may_stream; stream >= 0; stream--)
        add(out, &count, max, isas[0], (choice){0, threads, blocks[b], stream});
  for (int i = 1; isas[i]; i++) add(out, &count, max, isas[i], (choice){0, guess, 0, 0});
  return count;
}

/* ---- plans ---- */

static const at_interpret_isa *isa_called(const char *name) {
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  for (int i = 0; isas[i]; i++)
    if (strcmp(at_interpret_isa_name(isas[i]), name) == 0) return isas[i];
  return NULL;
}

static void run(const void *state, const at_host_elements *c) {
  const interpreter_plan *s = state;
  at_interpreter_call call = {
      .scalars = c->scalars, .draws = &c->draws, .threads = s->threads, .block = s->block, .stream = s->stream};
  memcpy(call.outputs, c->tensors, (size_t)s->output_count * sizeof *call.outputs);
  memcpy(call.inputs, c->tensors + s->output_count, (size_t)s->input_count * sizeof *call.inputs);
  at_interpreter_run(s->program, c->layout, &call);
}

static void run_small(const void *state, void *const *tensors, const at_constant *scalars, int64_t count) {
  at_interpreter_run_small(((const interpreter_plan *)state)->program, tensors, scalars, count);
}

/* A team shares what is more than a block. */
static int64_t small_most(const interpreter_plan *s) {
  const int64_t most = at_interpreter_small_most(s->program), block = s->block ? s->block : AT_BLOCK_MOST;
  return s->stream ? 0 : s->threads > 1 && block < most ? block : most;
}

static attune_status read(interpreter_plan *s, const at_interpret_isa **isa, const at_configuration *text) {
  choice c;
  if (!at_tunables_parse(&tunables, &c, text))
    return at_fail(ATTUNE_NOT_FOUND,
                   "configuration is %s; should be isa=NAME,threads=1..4096[,block=%d..%d][,stream=1]", text->text,
                   AT_BLOCK_LEAST, AT_BLOCK_MOST);
  *isa = isa_called(isa_names[c.isa]);
  if (!*isa) return at_fail(ATTUNE_NOT_FOUND, "this processor has no %s", isa_names[c.isa]);
  s->threads = c.threads;
  s->block = c.block;
  s->stream = c.stream != 0;
  return ATTUNE_OK;
}

static attune_status fill(at_host_plan *state, const at_plan *plan, at_expression **expression) {
  const at_elementwise *p = at_elementwise_of(plan->problem);
  const at_interpret_isa *isa = NULL;
  attune_dtype outputs[AT_EXPRESSION_OUTPUTS];
  interpreter_plan *s = (interpreter_plan *)state;
  for (int i = 0; i < p->output_count; i++) outputs[i] = (attune_dtype)p->dtypes[i];
  AT_TRY(read(s, &isa, &plan->configuration));
  AT_TRY(at_interpreter_create(&s->program, *expression, outputs, isa));
  s->output_count = p->output_count;
  s->input_count = p->input_count;
  s->host.run = run;
  s->host.run_small = run_small;
  s->host.small_most = small_most(s);
  s->host.straight = at_interpreter_straight(s->program);
  return ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  return at_host_plan_make(plan, sizeof(interpreter_plan), fill);
}

static void destroy(at_plan *plan) {
  interpreter_plan *s = plan->state;
  if (s) at_interpreter_destroy(s->program);
  at_host_plan_destroy(plan);
}

const at_implementation at_elementwise_host_interpreter = {
    .name = "host_interpreter",
    .version = 8,
    .backend = "host",
    .tunables = &tunables,
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = at_host_elements_launch,
    .destroy = destroy,
};
