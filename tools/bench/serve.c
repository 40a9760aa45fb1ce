/* SPDX-License-Identifier: Apache-2.0
 * serve.c: the worker's side of protocol.h. An answer goes out whole, when all of it is measured: a runner that woke up
 * in between would be in the way. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/support.h"
#include "tools/bench/protocol.h"
#include "tools/bench/sample.h"

enum { MOST_WORDS = 4, MOST_SAMPLES = 100000 };
static const int64_t MOST_SAMPLE_NS = INT64_C(60000000000);

typedef struct server {
  attune_bench *bench;
  int fd;
  bool gone; /* the runner: it said quit, or it ended */
  char in[AT_BENCH_LINE];
  size_t in_bytes;
  char *out; /* what is to be sent */
  size_t out_bytes, out_room;
  bool short_of_memory; /* something is missing in `out` */
  at_bench_timing open;
  size_t open_index;
} server;

/* ---- bytes ---- */

/* Whether the other side went away: no fault of ours. */
static attune_status fail_socket(server *s, const char *what, int error) {
  s->gone = error == EPIPE || error == ECONNRESET;
  if (s->gone) return ATTUNE_OK;
  const attune_status status = error == EBADF || error == ENOTSOCK ? ATTUNE_INVALID_ARGUMENT : ATTUNE_IO_ERROR;
  return at_fail(status, "fd %d cannot %s: %s; should be a connected socket", s->fd, what, strerror(error));
}

static void await(const server *s, short events) {
  struct pollfd one = {.fd = s->fd, .events = events};
  (void)poll(&one, 1, -1);
}

static attune_status send_all(server *s) {
  size_t done = 0;
  while (done < s->out_bytes && !s->gone) {
    const ssize_t sent = send(s->fd, s->out + done, s->out_bytes - done, MSG_NOSIGNAL);
    if (sent >= 0)
      done += (size_t)sent;
    else if (errno == EAGAIN)
      await(s, POLLOUT);
    else if (errno != EINTR) {
      AT_TRY(fail_socket(s, "be written", errno));
    }
  }
  s->out_bytes = 0;
  return s->short_of_memory ? at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reply") : ATTUNE_OK;
}

static attune_status receive_more(server *s) {
  for (;;) {
    const ssize_t got = recv(s->fd, s->in + s->in_bytes, sizeof s->in - s->in_bytes, 0);
    if (got > 0) {
      s->in_bytes += (size_t)got;
      return ATTUNE_OK;
    }
    s->gone = got == 0;
    if (s->gone) return ATTUNE_OK;
    if (errno == EAGAIN)
      await(s, POLLIN);
    else if (errno != EINTR)
      return fail_socket(s, "be read", errno);
  }
}

/* The next line without its end into line[AT_BENCH_LINE]; without one the runner is gone. */
static attune_status receive_line(server *s, char *line) {
  char *end = NULL;
  while (!s->gone && !(end = memchr(s->in, '\n', s->in_bytes))) {
    if (s->in_bytes == sizeof s->in)
      return at_fail(ATTUNE_BAD_DATA, "a request has more than %d bytes; should be a line of the protocol",
                     AT_BENCH_LINE);
    AT_TRY(receive_more(s));
  }
  if (!end) return ATTUNE_OK;
  const size_t bytes = (size_t)(end - s->in);
  memcpy(line, s->in, bytes);
  line[bytes] = '\0';
  s->in_bytes -= bytes + 1;
  memmove(s->in, end + 1, s->in_bytes);
  return strlen(line) == bytes ? ATTUNE_OK : at_fail(ATTUNE_BAD_DATA, "a request contains a zero byte; should be text");
}

/* ---- answers ---- */

AT_PRINTF(2, 3) static void put(server *s, const char *format, ...) {
  if (s->out_room - s->out_bytes < AT_BENCH_LINE) {
    const size_t room = 2 * s->out_room + 2 * AT_BENCH_LINE;
    char *larger = realloc(s->out, room);
    s->short_of_memory = s->short_of_memory || !larger;
    if (!larger) return;
    s->out = larger;
    s->out_room = room;
  }
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(s->out + s->out_bytes, AT_BENCH_LINE, format, values);
  va_end(values);
  if (length > 0) s->out_bytes += length < AT_BENCH_LINE ? (size_t)length : AT_BENCH_LINE - 1;
}

/* Nanoseconds to the picosecond, as a word. By hand: printf has the point of the program's locale. */
#define TIME_CHARS 32
static const char *time_text(char out[TIME_CHARS], double ns) {
  const double most = 1e18, whole = floor(ns > 0.0 ? ns < most ? ns : most : 0.0);
  const int rest = ns > 0.0 && ns < most ? (int)((ns - whole) * 1000.0) : 0;
  snprintf(out, TIME_CHARS, "%.0f.%03d", whole, rest);
  return out;
}

/* A word that may hold anything. `out` has room for any name or message. */
static const char *escape(char out[AT_BENCH_LINE / 2], const char *word) {
  size_t at = 0;
  for (; *word && at + 3 < AT_BENCH_LINE / 2; word++) {
    const char *found = strchr("\t\n\\", *word);
    if (found) out[at++] = '\\';
    out[at++] = found ? "tn\\"[found - "\t\n\\"] : *word;
  }
  out[at] = '\0';
  return out;
}

static void put_failed(server *s) {
  char message[AT_BENCH_LINE / 2];
  at_bench_close(&s->open);
  put(s, "failed\t%s\n", escape(message, attune_last_message()));
}

static void put_case(server *s, size_t index) {
  const attune_bench_case *c = &s->bench->entries[index].shown;
  char name[AT_BENCH_LINE / 2], dtype[AT_BENCH_ARITHMETIC_CHARS] = "-";
  if (c->flops > 0.0) at_bench_arithmetic(dtype, c);
  put(s, "case\t%zu\t%s\t%s\t%s%s\t%.0f\t%.0f\t%s", index, escape(name, c->name),
      c->device ? attune_device_name(c->device) : "-", c->flags & ATTUNE_BENCH_COLD ? "cold" : "hot",
      c->flags & ATTUNE_BENCH_GRAPH ? "+graph" : "", c->bytes, c->flops, dtype);
  if (c->peer_of) put(s, "\t%s", escape(name, c->peer_of));
  put(s, "\n");
}

static void put_sample(server *s, const at_bench_sample *one) {
  char ns[TIME_CHARS], cpu_ns[TIME_CHARS];
  put(s, "sample\t%lld\t%s\t%s\n", (long long)one->start_ns, time_text(ns, one->ns), time_text(cpu_ns, one->cpu_ns));
}

/* ---- requests ---- */

typedef struct request {
  char *words[MOST_WORDS + 1];
  int count;
} request;

static void split(request *r, char *line) {
  *r = (request){.words = {line}, .count = 1};
  for (char *at = line; (at = strchr(at, '\t')) && r->count <= MOST_WORDS;) {
    *at++ = '\0';
    r->words[r->count++] = at;
  }
}

static attune_status bad(const request *r, const char *should) {
  char shown[AT_SHOWN_CHARS];
  return at_fail(ATTUNE_BAD_DATA, "the runner sent \"%.60s\" with %d arguments; should be %s",
                 at_shown(shown, r->words[0]), r->count - 1, should);
}

static bool whole(int64_t *out, const char *word, int64_t least, int64_t most) {
  return at_parse_i64(out, word) && *out >= least && *out <= most;
}

static attune_status do_list(server *s, const request *r) {
  if (r->count != 1) return bad(r, "list alone");
  for (size_t i = 0; i < s->bench->count; i++) put_case(s, i);
  put(s, "end\n");
  return ATTUNE_OK;
}

static attune_status do_open(server *s, const request *r) {
  int64_t index = 0, sample_ns = 0, seed = 0;
  if (r->count < 3 || r->count > 4 || !whole(&index, r->words[1], 0, INT64_MAX) ||
      !whole(&sample_ns, r->words[2], 1, MOST_SAMPLE_NS) || (r->count == 4 && !whole(&seed, r->words[3], 0, INT64_MAX)))
    return bad(r, "open, a case's number, nanoseconds and a seed, in whole numbers");
  attune_status status = ATTUNE_OK;
  if (s->open.entry)
    status = AT_INVALID("case %zu is still open; should be closed before another", s->open_index);
  else if ((uint64_t)index >= s->bench->count)
    status = AT_INVALID("case %lld does not exist; should be below %zu", (long long)index, s->bench->count);
  else
    status = at_bench_open(&s->open, &s->bench->entries[index], (double)sample_ns, (uint64_t)seed);
  s->open_index = (size_t)index;
  if (status == ATTUNE_OK)
    put(s, "opened\t%lld\n", (long long)at_bench_calls(&s->open));
  else
    put_failed(s);
  return ATTUNE_OK;
}

static attune_status fail_closed(void) {
  return AT_INVALID("no case is open; the runner should open one first");
}

static attune_status do_sample(server *s, const request *r) {
  int64_t count = 0;
  at_bench_clock clock;
  if (r->count != 2 || !whole(&count, r->words[1], 1, MOST_SAMPLES))
    return bad(r, "sample and a number from 1 to 100000");
  attune_status status = s->open.entry ? ATTUNE_OK : fail_closed();
  if (status == ATTUNE_OK) at_bench_clock_begin(&clock, &s->open);
  for (int64_t i = 0; i < count && status == ATTUNE_OK; i++) {
    at_bench_sample one;
    status = at_bench_take(&s->open, &one);
    if (status == ATTUNE_OK) put_sample(s, &one);
  }
  if (status == ATTUNE_OK) {
    at_bench_clock_end(&clock, &s->open);
    put(s, "end\t%d\t%d\n", clock.mhz, clock.throttled);
  } else
    put_failed(s);
  return ATTUNE_OK;
}

static attune_status do_close(server *s, const request *r) {
  if (r->count != 1) return bad(r, "close alone");
  if (!s->open.entry) {
    (void)fail_closed();
    put_failed(s);
    return ATTUNE_OK;
  }
  at_bench_close(&s->open);
  put(s, "closed\n");
  return ATTUNE_OK;
}

static attune_status do_quit(server *s, const request *r) {
  if (r->count != 1) return bad(r, "quit alone");
  s->gone = true;
  return ATTUNE_OK;
}

static attune_status answer(server *s, char *line) {
  static const struct {
    const char *name;
    attune_status (*act)(server *s, const request *r);
  } known[] = {{"list", do_list}, {"open", do_open}, {"sample", do_sample}, {"close", do_close}, {"quit", do_quit}};
  request r;
  split(&r, line);
  for (size_t i = 0; i < AT_COUNT(known); i++)
    if (strcmp(r.words[0], known[i].name) == 0) return known[i].act(s, &r);
  return bad(&r, "list, open, sample, close or quit");
}

static attune_status talk(server *s) {
  char line[AT_BENCH_LINE];
  put(s, "attune-bench\t%d\t%s\n", AT_BENCH_PROTOCOL, attune_version());
  attune_status status = send_all(s);
  while (status == ATTUNE_OK && !s->gone) {
    status = receive_line(s, line);
    if (status == ATTUNE_OK && !s->gone) status = answer(s, line);
    if (status == ATTUNE_OK && !s->gone) status = send_all(s);
  }
  if (status != ATTUNE_BAD_DATA) return status;
  const at_message kept = at_message_keep();
  put_failed(s); /* so that the runner can say it */
  (void)send_all(s);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

attune_status attune_bench_serve(attune_bench *bench, int fd) {
  AT_REQUIRE(bench);
  if (fd < 0) return AT_INVALID("fd is %d; should be a connected socket", fd);
  server *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to serve a runner");
  s->bench = bench;
  s->fd = fd;
  const attune_status status = talk(s);
  at_bench_close(&s->open);
  free(s->out);
  free(s);
  return status;
}
