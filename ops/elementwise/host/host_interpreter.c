/* SPDX-License-Identifier: Apache-2.0
 * host_interpreter.c: elementwise on the host by the interpreter: blocks of elements, one vector loop a node. Tunables: the
 * instruction set, threads, elements of a block, and whether outputs are written past the caches. */
#include <string.h>

#include "ops/elementwise/host/host_call.h"
#include "ops/elementwise/host/interpret.h"
#include "src/host/threads.h"

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

typedef struct choice {
  const at_interpret_isa *isa;
  int threads, block;
  bool stream;
} choice;

static void add(at_configuration *out, int *count, int max, const choice *c) {
  at_configuration text = {""};
  bool ok = at_configuration_put_text(&text, "isa", at_interpret_isa_name(c->isa)) &&
            at_configuration_put(&text, "threads", c->threads);
  if (c->block) ok = ok && at_configuration_put(&text, "block", c->block);
  if (c->stream) ok = ok && at_configuration_put(&text, "stream", 1);
  for (int i = 0; i < *count && ok; i++) ok = strcmp(out[i].text, text.text) != 0;
  if (ok && *count < max) out[(*count)++] = text;
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
  for (int stream = may_stream; stream >= 0; stream--) add(out, &count, max, &(choice){isas[0], guess, 0, stream != 0});
  for (int threads = 1; threads <= most; threads = threads < most && 2 * threads > most ? most : 2 * threads)
    for (size_t b = 0; b < AT_COUNT(blocks); b++)
      for (int stream = may_stream; stream >= 0; stream--)
        add(out, &count, max, &(choice){isas[0], threads, blocks[b], stream != 0});
  for (int i = 1; isas[i]; i++) add(out, &count, max, &(choice){isas[i], guess, 0, false});
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
  char name[24];
  int64_t threads = 0, block = 0, stream = 0;
  const bool has_isa = at_configuration_get_text(text, "isa", name, sizeof name);
  if (!has_isa || !at_configuration_get(text, "threads", &threads) || threads < 1 || threads > 4096)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; should be isa=NAME,threads=1..4096[,block=N][,stream=1]",
                   text->text);
  (void)at_configuration_get(text, "block", &block);
  (void)at_configuration_get(text, "stream", &stream);
  *isa = isa_called(name);
  if (!*isa) return at_fail(ATTUNE_NOT_FOUND, "this processor has no %s", name);
  if ((block && (block < AT_BLOCK_LEAST || block > AT_BLOCK_MOST)) || stream < 0 || stream > 1)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; block should be %d to %d, stream 1", text->text,
                   AT_BLOCK_LEAST, AT_BLOCK_MOST);
  s->threads = (int)threads;
  s->block = (int)block;
  s->stream = stream == 1;
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
    .version = 7,
    .backend = "host",
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = at_host_elements_launch,
    .destroy = destroy,
};
