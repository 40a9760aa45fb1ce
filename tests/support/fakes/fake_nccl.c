/* SPDX-License-Identifier: Apache-2.0
 * fake_nccl.c: an NCCL for tests: ranks of one process, in one thread or in several, on memory of the host, at once. A
 * call ends when all ranks have made it. FAKE_NCCL: old, refusing (calls fail), broken (fails later), stuck (calls wait
 * for an abort). What was called is in fake_nccl_log. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, CALLS = 4096, SUCCESS = 0, SYSTEM_ERROR = 2, BAD_ARGUMENT = 4, BAD_USAGE = 5, REMOTE_ERROR = 6 };
enum { BROADCAST, REDUCE, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECV };
enum { SUM, PRODUCT, MOST, LEAST, MEAN }; /* NCCL's numbers */

typedef struct id {
  char bytes[128];
} id;

typedef struct clique {
  struct clique *next;
  id name;
  int size, joined, aborted;
  int made[RANKS], done; /* collective calls */
  struct call *calls[RANKS][CALLS];
  struct call *waiting; /* sends and receives */
} clique;

typedef struct comm {
  clique *in;
  int rank;
} comm;

typedef struct call {
  int kind, type, op, root, finished;
  const void *in;
  void *out;
  size_t count;
  comm *by;
  void *stream;
  struct call *next;
} call;

char fake_nccl_log[1 << 16];

#define FAKE __attribute__((visibility("default")))
extern char FAKE fake_nccl_log[];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static clique *cliques;
static int ids;
static _Thread_local int depth, failed;
static _Thread_local call *group;

static int mode(const char *word) {
  const char *set = getenv("FAKE_NCCL");
  return set && strcmp(set, word) == 0;
}

static void tell(const char *what, const call *c) {
  char line[160];
  snprintf(line, sizeof line, "%s rank %d count %zu type %d root %d stream %p\n", what, c->by->rank, c->count, c->type,
           c->root, c->stream);
  pthread_mutex_lock(&lock);
  if (strlen(fake_nccl_log) + strlen(line) < sizeof fake_nccl_log) strcat(fake_nccl_log, line);
  pthread_mutex_unlock(&lock);
}

static size_t size_of(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

static double combine(int op, double x, double y) {
  return op == PRODUCT ? x * y : op == MOST ? (y > x ? y : x) : op == LEAST ? (y < x ? y : x) : x + y;
}

/* The types that the test reduces: u8, i32, i64, f32, f64. `last` divides the mean by the number of ranks. */
static void reduce(void *to, const void *from, const call *c, size_t count, int last) {
  const double share = c->op == MEAN && last ? last : 1;
  for (size_t i = 0; i < count; i++) {
#define AS(type) \
  ((type *)to)[i] = (type)(combine(c->op, (double)((type *)to)[i], (double)((const type *)from)[i]) / share)
    if (c->type == 1) AS(unsigned char);
    if (c->type == 2) AS(int);
    if (c->type == 4) AS(long long);
    if (c->type == 7) AS(float);
    if (c->type == 8) AS(double);
  }
}

/* Lock held; every rank has made the call. */
static void execute(clique *q, int number) {
  call *first = q->calls[0][number];
  const size_t ranks = (size_t)q->size, bytes = first->count * size_of(first->type);
  const size_t parts = first->kind == ALL_GATHER || first->kind == REDUCE_SCATTER ? ranks : 1;
  char *result = malloc(bytes * parts + 1);
  if (first->kind == ALL_GATHER) {
    for (size_t r = 0; r < ranks; r++) memcpy(result + r * bytes, q->calls[r][number]->in, bytes);
  } else {
    memcpy(result, q->calls[first->kind == BROADCAST ? first->root : 0][number]->in, bytes * parts);
    for (int r = 1; r < q->size && first->kind != BROADCAST; r++)
      reduce(result, q->calls[r][number]->in, first, first->count * parts, r == q->size - 1 ? q->size : 0);
  }
  for (int r = 0; r < q->size; r++) {
    call *c = q->calls[r][number];
    if (c->kind != first->kind || c->count != first->count || c->type != first->type || c->root != first->root ||
        c->op != first->op)
      abort();
    if (c->kind == REDUCE_SCATTER)
      memcpy(c->out, result + (size_t)r * bytes, bytes);
    else if (c->kind != REDUCE || r == c->root)
      memcpy(c->out, result, bytes * parts);
    c->finished = 1;
  }
  free(result);
  q->done++;
}

/* Lock held. */
static void meet(clique *q, call *c) {
  for (call **at = &q->waiting; *at; at = &(*at)->next) {
    call *other = *at;
    if (other->kind == c->kind || other->root != c->by->rank || c->root != other->by->rank) continue;
    if (other->count != c->count) abort();
    memcpy(c->kind == RECV ? c->out : other->out, c->kind == SEND ? c->in : other->in, c->count * size_of(c->type));
    other->finished = c->finished = 1;
    *at = other->next;
    return;
  }
  c->next = q->waiting;
  q->waiting = c;
}

static void post(call *c) {
  clique *q = c->by->in;
  if (c->kind >= SEND) {
    meet(q, c);
    return;
  }
  q->calls[c->by->rank][q->made[c->by->rank]++] = c;
  int all = 1;
  for (int r = 0; r < q->size; r++) all = all && q->made[r] > q->done;
  if (all && !mode("stuck")) execute(q, q->done);
}

static int flush(void) {
  call *all = group, *next;
  int error = failed;
  group = NULL;
  failed = 0;
  pthread_mutex_lock(&lock);
  call *turned = NULL;
  for (; all; all = next) next = all->next, all->next = turned, turned = all; /* as they were made */
  call *list[CALLS];
  int count = 0;
  for (; turned; turned = next) {
    next = turned->next;
    turned->next = NULL;
    list[count++] = turned;
  }
  for (int i = 0; i < count && !error; i++) post(list[i]);
  pthread_cond_broadcast(&changed);
  for (int i = 0; i < count && !error; i++)
    while (!list[i]->finished) {
      if (list[i]->by->in->aborted) {
        error = REMOTE_ERROR;
        break;
      }
      pthread_cond_wait(&changed, &lock);
    }
  if (!error)
    for (int i = 0; i < count; i++) free(list[i]);
  pthread_mutex_unlock(&lock);
  return error;
}

static int give(const char *what, call c) {
  tell(what, &c);
  if (mode("refusing")) return failed = SYSTEM_ERROR;
  if (!c.by) return failed = BAD_ARGUMENT;
  call *kept = malloc(sizeof *kept);
  *kept = c;
  kept->next = group;
  group = kept;
  return depth > 0 ? SUCCESS : flush();
}

FAKE int ncclGetVersion(int *version);
FAKE int ncclGetUniqueId(id *out);
FAKE int ncclCommInitRank(void **out, int size, id name, int rank);
FAKE int ncclCommInitAll(void **out, int count, const int *devices);
FAKE int ncclCommDestroy(void *handle);
FAKE int ncclCommAbort(void *handle);
FAKE int ncclCommGetAsyncError(void *handle, int *error);
FAKE const char *ncclGetErrorString(int error);
FAKE int ncclGroupStart(void);
FAKE int ncclGroupEnd(void);
FAKE int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, void *handle, void *stream);
FAKE int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, void *handle, void *stream);
FAKE int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *handle, void *stream);
FAKE int ncclAllGather(const void *in, void *out, size_t count, int type, void *handle, void *stream);
FAKE int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, void *handle, void *stream);
FAKE int ncclSend(const void *in, size_t count, int type, int peer, void *handle, void *stream);
FAKE int ncclRecv(void *out, size_t count, int type, int peer, void *handle, void *stream);

int ncclGetVersion(int *version) {
  *version = mode("old") ? 20907 : 22809;
  return SUCCESS;
}

int ncclGetUniqueId(id *out) {
  memset(out, 0, sizeof *out);
  snprintf(out->bytes, sizeof out->bytes, "clique %d", ++ids);
  return SUCCESS;
}

static comm *join(id name, int size, int rank) {
  clique *q = cliques;
  while (q && memcmp(&q->name, &name, sizeof name) != 0) q = q->next;
  if (!q) {
    q = calloc(1, sizeof *q);
    *q = (clique){.next = cliques, .name = name, .size = size};
    cliques = q;
  }
  q->joined++;
  comm *c = calloc(1, sizeof *c);
  *c = (comm){q, rank};
  return c;
}

int ncclCommInitRank(void **out, int size, id name, int rank) {
  if (mode("refusing")) return BAD_USAGE;
  pthread_mutex_lock(&lock);
  comm *c = join(name, size, rank);
  pthread_cond_broadcast(&changed);
  while (c->in->joined < size) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  *out = c;
  return SUCCESS;
}

int ncclCommInitAll(void **out, int count, const int *devices) {
  id name;
  ncclGetUniqueId(&name);
  if (mode("refusing")) return SYSTEM_ERROR;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count; i++) {
    if (devices[i] != i) abort(); /* as the test has them */
    out[i] = join(name, count, i);
  }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

int ncclCommDestroy(void *handle) {
  free(handle);
  return SUCCESS;
}

int ncclCommAbort(void *handle) {
  pthread_mutex_lock(&lock);
  ((comm *)handle)->in->aborted = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

int ncclCommGetAsyncError(void *handle, int *error) {
  (void)handle;
  *error = mode("broken") ? REMOTE_ERROR : SUCCESS;
  return SUCCESS;
}

const char *ncclGetErrorString(int error) {
  return error == SYSTEM_ERROR   ? "unhandled system error"
         : error == REMOTE_ERROR ? "remote process exited"
         : error == BAD_USAGE    ? "invalid usage"
                                 : "invalid argument";
}

int ncclGroupStart(void) {
  depth++;
  return SUCCESS;
}

int ncclGroupEnd(void) {
  return --depth > 0 ? SUCCESS : flush();
}

int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, void *handle, void *stream) {
  return give("broadcast", (call){.kind = BROADCAST,
                                  .type = type,
                                  .root = root,
                                  .in = in,
                                  .out = out,
                                  .count = count,
                                  .by = handle,
                                  .stream = stream});
}

int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, void *handle, void *stream) {
  return give("reduce", (call){.kind = REDUCE,
                               .type = type,
                               .op = op,
                               .root = root,
                               .in = in,
                               .out = out,
                               .count = count,
                               .by = handle,
                               .stream = stream});
}

/* A call without a root. */
static int give_even(const char *what, int kind, const void *in, void *out, size_t count, int type, int op,
                     void *handle, void *stream) {
  return give(
      what,
      (call){
          .kind = kind, .type = type, .op = op, .in = in, .out = out, .count = count, .by = handle, .stream = stream});
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *handle, void *stream) {
  return give_even("all_reduce", ALL_REDUCE, in, out, count, type, op, handle, stream);
}

int ncclAllGather(const void *in, void *out, size_t count, int type, void *handle, void *stream) {
  return give_even("all_gather", ALL_GATHER, in, out, count, type, SUM, handle, stream);
}

int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, void *handle, void *stream) {
  return give_even("reduce_scatter", REDUCE_SCATTER, in, out, count, type, op, handle, stream);
}

int ncclSend(const void *in, size_t count, int type, int peer, void *handle, void *stream) {
  return give(
      "send",
      (call){.kind = SEND, .type = type, .root = peer, .in = in, .count = count, .by = handle, .stream = stream});
}

int ncclRecv(void *out, size_t count, int type, int peer, void *handle, void *stream) {
  return give(
      "recv",
      (call){.kind = RECV, .type = type, .root = peer, .out = out, .count = count, .by = handle, .stream = stream});
}
