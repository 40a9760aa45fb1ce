/* SPDX-License-Identifier: Apache-2.0
 * cuda_each.c: a batch that arrays of pointers in host memory name, product by product on CUDA: by any implementation
 * of one product (inner.h), on one stream or in turn on several, which the stream waits for: "streams=4,product=...".
 * For a few large matrices, which fill the device by themselves.
 *
 * The other streams belong to the stream of the call, which one thread uses at a time: so no two threads, nor a capture
 * and other work, ever share them. */
#include <pthread.h>
#include <stdlib.h>

#include "ops/gemm/inner.h"
#include "ops/gemm/problem/arrays.h"

enum { MOST_MATRICES = 64, MOST_OF_ONE = 6, MOST_STREAMS = 8, USUAL_STREAMS = 4, MOST_TEAMS = 32 };

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  (void)self;
  if (g->pointers != ATTUNE_POINTERS_HOST || g->batch > MOST_MATRICES) return false;
  const at_gemm one = at_gemm_one_of(g);
  return at_gemm_inner_any(&one, device);
}

/* ---- configurations ---- */

static bool with_streams(at_configuration *out, const at_configuration *product, int streams) {
  size_t at = 0;
  return at_append(out->text, sizeof out->text, &at, "streams=%d,%s", streams, product->text);
}

/* The product that a configuration names, without the streams. */
static at_configuration product_of(const at_configuration *whole) {
  at_configuration product = {""};
  const char *from = strstr(whole->text, "product=");
  at_copy_text(product.text, sizeof product.text, from ? from : "");
  return product;
}

static int usual_streams(const at_gemm *g) {
  return g->batch < USUAL_STREAMS ? (int)g->batch : USUAL_STREAMS;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  enum { ROOM = 128 };
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  at_configuration products[ROOM];
  int count = 0;
  (void)self;
  const int found = at_gemm_inner_configurations(&one, device, products, max < ROOM ? max : ROOM, MOST_OF_ONE);
  for (int i = 0; i < found && count < max; i++)
    count += with_streams(&out[count], &products[i], usual_streams(at_gemm_of(problem)));
  return count;
}

/* The leader on other numbers of streams, then its product's neighbours on as many as it has. */
static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  const at_gemm *g = at_gemm_of(problem), one = at_gemm_one_of(g);
  const at_configuration product = product_of(leader);
  int64_t streams = 0;
  int count = 0;
  if (!at_configuration_get(leader, "streams", &streams)) return 0;
  for (int s = 1; s <= MOST_STREAMS && s <= g->batch && count < max; s *= 2)
    if (s != streams) count += with_streams(&out[count], &product, s);
  const int found = at_gemm_inner_neighbours(self, &one, device, leader, out + count, max - count);
  for (int i = 0, end = count + found, from = count; from + i < end; i++) {
    const at_configuration near = out[from + i];
    count += with_streams(&out[count], &near, (int)streams);
  }
  return count;
}

static void prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *all, int count) {
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  at_gemm_inner_prepare_many(self, &one, device, all, count);
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  return at_gemm_inner_compile(self, &one, device, configuration, made);
}

/* ---- plans ---- */

typedef struct team {
  const attune_stream *of;
  attune_stream *others[MOST_STREAMS - 1];
} team;

typedef struct each_plan {
  at_plan *product;
  int streams;
  pthread_mutex_t lock; /* of the teams: they are added and never changed */
  team *teams[MOST_TEAMS];
  int team_count;
} each_plan;

static void destroy_team(team *t) {
  for (int i = 0; i < MOST_STREAMS - 1; i++) attune_stream_destroy(t->others[i]);
  free(t);
}

static void destroy(at_plan *plan) {
  each_plan *s = plan->state;
  if (!s) return;
  if (s->product) at_plan_destroy(s->product);
  for (int i = 0; i < s->team_count; i++) destroy_team(s->teams[i]);
  pthread_mutex_destroy(&s->lock);
  free(s);
  plan->state = NULL;
}

static attune_status prepare(at_plan *plan) {
  const at_gemm *g = at_gemm_of(plan->problem), one = at_gemm_one_of(g);
  int64_t streams = 0;
  if (!at_configuration_get(&plan->configuration, "streams", &streams) || streams < 1 || streams > MOST_STREAMS ||
      streams > g->batch)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; cuda_each does not have it for this problem",
                   plan->configuration.text);
  each_plan *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of cuda_each");
  pthread_mutex_init(&s->lock, NULL);
  s->streams = (int)streams;
  plan->state = s;
  const attune_status status = at_gemm_inner_plan(&s->product, plan, &one);
  if (status == ATTUNE_OK)
    plan->workspace_bytes = s->product->workspace_bytes;
  else
    destroy(plan);
  return status;
}

static team *new_team(const each_plan *s, const attune_stream *stream) {
  team *t = calloc(1, sizeof *t);
  attune_status status = ATTUNE_OK;
  for (int i = 0; t && i < s->streams - 1 && status == ATTUNE_OK; i++)
    status = attune_stream_create(&t->others[i], stream->device);
  if (t && status != ATTUNE_OK) {
    destroy_team(t);
    return NULL;
  }
  if (t) t->of = stream;
  return t;
}

/* The other streams of a call's stream, made at its first call; NULL: there are none, and it does all work itself. */
static team *team_of(each_plan *s, attune_stream *stream) {
  team *found = NULL;
  if (s->streams == 1) return NULL;
  pthread_mutex_lock(&s->lock);
  for (int i = 0; i < s->team_count && !found; i++)
    if (s->teams[i]->of == stream) found = s->teams[i];
  if (!found && s->team_count < MOST_TEAMS && !at_stream_capturing(stream)) {
    const at_message kept = at_message_keep();
    found = new_team(s, stream);
    (void)at_message_settle(&kept, ATTUNE_OK);
    if (found) s->teams[s->team_count++] = found;
  }
  pthread_mutex_unlock(&s->lock);
  return found;
}

static attune_status launch_all(const each_plan *s, const team *t, const at_gemm *g, const at_gemm_operands *o,
                                attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  for (int64_t i = 0; i < g->batch && status == ATTUNE_OK; i++) {
    const at_gemm_operands one = at_gemm_operands_at(g, o, i);
    const int turn = t ? (int)(i % s->streams) : 0;
    status = s->product->launch(s->product, &one, turn ? t->others[turn - 1] : stream);
  }
  return status;
}

/* What was forked joins again after a failure too: a capture could not end otherwise. */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  each_plan *s = plan->state;
  const team *t = team_of(s, stream);
  attune_status status = ATTUNE_OK;
  int forked = 0;
  for (; t && forked < s->streams - 1 && status == ATTUNE_OK; forked++)
    status = attune_stream_wait_stream(t->others[forked], stream);
  if (status == ATTUNE_OK) status = launch_all(s, t, at_gemm_of(plan->problem), operands, stream);
  for (int i = 0; i < forked; i++) {
    const attune_status joined = attune_stream_wait_stream(stream, t->others[i]);
    if (status == ATTUNE_OK) status = joined;
  }
  return status;
}

const at_implementation at_gemm_cuda_each = {
    .name = "cuda_each",
    .version = 1,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare,
    .prepare_many = prepare_many,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};
