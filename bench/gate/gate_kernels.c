/* SPDX-License-Identifier: Apache-2.0
 * gate_kernels.c: 24 pieces of stream work as cases for `attune bench`, to try the gate itself on a GPU, as
 * gate_functions.c does on the host.
 *
 *   bench_gate_kernels [--device=NAME] [--slow=FILE]
 *
 * Where FILE exists it has lines CASE PERCENT: each of these cases really does so much more work. The device is cuda:0
 * unless it is named. All work is larger than the caches of a GPU, so that its time grows with its size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attune/attune.h>
#include <attune/tools.h>

enum { SIZES = 4, KINDS = 6, SLOW_MOST = 16 };

typedef struct work {
  attune_plan *plan; /* NULL: a copy or a fill */
  const char *expression;
  size_t n; /* elements */
  attune_tensor in[2], out;
  attune_elementwise_operands operands;
} work;

typedef struct slowing {
  char name[64];
  double percent;
} slowing;

static attune_device *device;
static attune_tuner *tuner;
static slowing slow[SLOW_MOST];
static int slow_count;

static attune_status copy(void *arg, attune_stream *stream) {
  const work *w = arg;
  return attune_copy(stream, w->out.data, w->in[0].data, w->n * sizeof(float));
}

static attune_status fill(void *arg, attune_stream *stream) {
  const work *w = arg;
  return attune_fill(stream, w->out.data, 1, w->n * sizeof(float));
}

static attune_status run_plan(void *arg, attune_stream *stream) {
  const work *w = arg;
  return attune_elementwise_plan_run(w->plan, stream, &w->operands);
}

static attune_tensor tensor(const char *name, void *data, size_t n) {
  return (attune_tensor){.name = name, .data = data, .dtype = ATTUNE_F32, .dims = 1, .sizes = {(int64_t)n}};
}

static void tear_down(void *arg) {
  work *w = arg;
  attune_stream *stream = attune_stream_default(device);
  attune_plan_destroy(w->plan);
  w->plan = NULL;
  for (int i = 0; i < 2; i++) (void)attune_free(w->in[i].data, stream);
  (void)attune_free(w->out.data, stream);
}

static attune_status set_up(void *arg) {
  work *w = arg;
  attune_stream *stream = attune_stream_default(device);
  const size_t bytes = w->n * sizeof(float);
  void *memory[3] = {0};
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < 3 && status == ATTUNE_OK; i++) {
    status = attune_alloc(&memory[i], stream, bytes);
    if (status == ATTUNE_OK) status = attune_fill(stream, memory[i], 0, bytes);
  }
  w->in[0] = tensor("a", memory[0], w->n);
  w->in[1] = tensor("b", memory[1], w->n);
  w->out = tensor("out", memory[2], w->n);
  const int inputs = w->expression && strchr(w->expression, 'b') ? 2 : 1;
  w->operands =
      (attune_elementwise_operands){.outputs = &w->out, .output_count = 1, .inputs = w->in, .input_count = inputs};
  if (status == ATTUNE_OK && w->expression)
    status = attune_elementwise_plan_create(&w->plan, tuner, stream, w->expression, &w->operands);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  if (status != ATTUNE_OK) tear_down(w);
  return status;
}

static void read_slowing(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) return;
  while (slow_count < SLOW_MOST && fscanf(file, "%63s %lf", slow[slow_count].name, &slow[slow_count].percent) == 2)
    slow_count++;
  fclose(file);
}

static size_t size_of(const char *name, size_t n) {
  for (int i = 0; i < slow_count; i++)
    if (strcmp(name, slow[i].name) == 0) return (size_t)((double)n * (1.0 + slow[i].percent / 100.0)) / 1024 * 1024;
  return n;
}

typedef struct kind {
  const char *name;
  const char *expression;
  double reads; /* of n floats; one is written */
} kind;

static attune_status add(attune_bench *bench, work *w, const kind *k, int megabytes) {
  char name[64];
  snprintf(name, sizeof name, "%s/%dMiB", k->name, megabytes);
  const size_t n = ((size_t)megabytes << 20) / sizeof(float);
  *w = (work){.expression = k->expression, .n = size_of(name, n)};
  const attune_bench_case c = {.size = sizeof c,
                               .name = name,
                               .device = device,
                               .set_up = set_up,
                               .run = k->expression    ? run_plan
                                      : k->reads > 0.0 ? copy
                                                       : fill,
                               .tear_down = tear_down,
                               .arg = w,
                               .bytes = (k->reads + 1.0) * (double)(n * sizeof(float))};
  return attune_bench_add(bench, &c);
}

static const char *value_of(const char *argument, const char *option) {
  const size_t length = strlen(option);
  return strncmp(argument, option, length) == 0 ? argument + length : NULL;
}

int main(int argc, char **argv) {
  static const kind kinds[KINDS] = {{"copy", NULL, 1.0},        {"fill", NULL, 0.0},      {"add", "a + b", 2.0},
                                    {"exp", "exp(a) + b", 2.0}, {"gelu", "gelu(a)", 1.0}, {"scale", "a * 2", 1.0}};
  static const int sizes[SIZES] = {128, 192, 256, 384};
  static work works[KINDS * SIZES];
  const char *name = "cuda:0", *given;
  attune_bench *bench = NULL;
  for (int i = 1; i < argc; i++) {
    if ((given = value_of(argv[i], "--device="))) name = given;
    if ((given = value_of(argv[i], "--slow="))) read_slowing(given);
  }
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  attune_status status = attune_device_get(&device, name);
  if (status == ATTUNE_OK) status = attune_tuner_create(&tuner, &options);
  if (status == ATTUNE_OK) status = attune_bench_create(&bench);
  for (int k = 0; k < KINDS; k++)
    for (int s = 0; s < SIZES && status == ATTUNE_OK; s++)
      status = add(bench, &works[k * SIZES + s], &kinds[k], sizes[s]);
  if (status == ATTUNE_OK) return attune_bench_main(bench, argc, argv);
  fprintf(stderr, "bench_gate_kernels: %s\n", attune_last_message());
  return 1;
}
