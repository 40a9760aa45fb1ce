/* SPDX-License-Identifier: Apache-2.0
 * user_function.c: see user_function.h. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ops/elementwise/ir/user_function.h"

#include <attune/elementwise_cuda.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/fork.h"

enum { BUCKETS = 256, MEMORIES = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table and `users`; held over a fork */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static at_user_function *table[BUCKETS];

static void watch_forks(void) {
  static at_fork_watch watch = {.lock = &lock};
  at_fork_watch_add(&watch);
}

static at_user_function **bucket_of(const char *hash) {
  unsigned number = 0;
  for (int i = 0; i < 2; i++)
    number = 16 * number + (unsigned)(hash[i] >= 'a' ? hash[i] - 'a' + 10 : hash[i] - '0') % 16;
  return &table[number % BUCKETS];
}

/* Under the lock. */
static at_user_function *find_locked(const char *hash) {
  at_user_function *raw = *bucket_of(hash);
  while (raw && strcmp(raw->hash, hash) != 0) raw = raw->next;
  if (raw) raw->users++;
  return raw;
}

at_user_function *at_user_function_find(const char *hash) {
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
  at_user_function *raw = find_locked(hash);
  pthread_mutex_unlock(&lock);
  return raw;
}

at_user_function *at_user_function_hold(at_user_function *raw) {
  pthread_mutex_lock(&lock);
  raw->users++;
  pthread_mutex_unlock(&lock);
  return raw;
}

static void destroy(at_user_function *raw) {
  if (!raw) return;
  free(raw->text);
  free(raw->own_text);
  free(raw);
}

void at_user_function_release(at_user_function *raw) {
  if (!raw) return;
  pthread_mutex_lock(&lock);
  const bool last = --raw->users == 0;
  if (last) {
    at_user_function **at = bucket_of(raw->hash);
    while (*at != raw) at = &(*at)->next;
    *at = raw->next;
  }
  pthread_mutex_unlock(&lock);
  if (last) destroy(raw);
}

/* ---- from a source ---- */

/* Bytes that are in no text: the compiler takes some for the end. */
static const char *find_stray(const char *source) {
  for (const unsigned char *at = (const unsigned char *)source; *at; at++)
    if ((*at < ' ' && !(*at >= '\t' && *at <= '\r')) || *at == 0x7f || *at == 0xc0 || *at == 0xc1 || *at >= 0xf5)
      return (const char *)at;
  return NULL;
}

static attune_status check(const char *source, const char *name) {
  static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  AT_REQUIRE_AS(source, "be CUDA C that defines the function of one element");
  AT_REQUIRE_AS(name, "be the name of the function in the source");
  if (strnlen(source, ATTUNE_ELEMENTWISE_CUDA_CHARS + 1) > ATTUNE_ELEMENTWISE_CUDA_CHARS)
    return AT_INVALID("the source has more than %d characters, the maximum", ATTUNE_ELEMENTWISE_CUDA_CHARS);
  const char *stray = find_stray(source);
  if (stray)
    return AT_INVALID("byte %td of the source is 0x%02x; should be text in UTF-8", stray - source,
                      (unsigned char)*stray);
  const size_t chars = strnlen(name, AT_USER_FUNCTION_NAME_CHARS);
  if (chars == 0 || chars == AT_USER_FUNCTION_NAME_CHARS || strspn(name, letters) != chars ||
      (name[0] >= '0' && name[0] <= '9'))
    return AT_INVALID(
        "name is \"%.40s\"; should consist of at most %d letters, digits and _, and not start with a digit", name,
        AT_USER_FUNCTION_NAME_CHARS - 1);
  if (strncmp(name, "at_", 3) == 0 || strncmp(name, "AT_", 3) == 0 || strncmp(name, "fn_", 3) == 0)
    return AT_INVALID("name is %s; names that begin with at_, AT_ or fn_ are reserved: choose another", name);
  return ATTUNE_OK;
}

/* What the thread met lately: hashes of a source as it is written, and that of its one form. */
typedef struct memory {
  XXH128_hash_t written;
  char hash[AT_USER_FUNCTION_HASH_CHARS]; /* "": nothing */
} memory;

static memory *memory_of(XXH128_hash_t written) {
  static _Thread_local memory memories[MEMORIES];
  return &memories[written.low64 % MEMORIES];
}

static XXH128_hash_t hash_of(const char *text, const char *name) {
  return XXH3_128bits_withSeed(text, strlen(text), XXH3_64bits(name, strlen(name)));
}

static at_user_function *make(const char *source, const char *name) {
  bool renamed;
  at_user_function *raw = calloc(1, sizeof *raw);
  if (!raw) return NULL;
  raw->users = 1;
  raw->own_text = strdup(source);
  raw->text = at_user_function_text(source, name, &renamed);
  if (!raw->own_text || !raw->text) {
    destroy(raw);
    return NULL;
  }
  (void)at_copy_text(raw->own_name, sizeof raw->own_name, name);
  (void)at_copy_text(raw->name, sizeof raw->name, renamed ? AT_USER_FUNCTION_NAME : name);
  const XXH128_hash_t hash = hash_of(raw->text, raw->name);
  size_t at = 0;
  (void)at_append(raw->hash, sizeof raw->hash, &at, "%016llx%016llx", (unsigned long long)hash.high64,
                  (unsigned long long)hash.low64);
  return raw;
}

/* Puts it into the table, or takes its like, which has come first. */
static at_user_function *put(at_user_function *raw) {
  pthread_mutex_lock(&lock);
  at_user_function *like = find_locked(raw->hash);
  if (!like) {
    at_user_function **bucket = bucket_of(raw->hash);
    raw->next = *bucket;
    *bucket = raw;
  }
  pthread_mutex_unlock(&lock);
  if (!like) return raw;
  destroy(raw);
  return like;
}

attune_status at_user_function_get(at_user_function **out, const char *source, const char *name) {
  *out = NULL;
  AT_TRY(check(source, name));
  const XXH128_hash_t written = hash_of(source, name);
  memory *m = memory_of(written);
  if (m->hash[0] && XXH128_isEqual(m->written, written)) *out = at_user_function_find(m->hash);
  if (*out) return ATTUNE_OK;
  at_user_function *raw = make(source, name);
  if (!raw) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a source of %zu characters", strlen(source));
  pthread_once(&once, watch_forks);
  *out = put(raw);
  m->written = written;
  memcpy(m->hash, (*out)->hash, sizeof m->hash);
  return ATTUNE_OK;
}
