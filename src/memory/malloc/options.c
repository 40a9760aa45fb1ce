/* SPDX-License-Identifier: Apache-2.0
 * options.c: parses the keys of ATTUNE_ALLOC, which have the names that PyTorch's PYTORCH_CUDA_ALLOC_CONF gives them.
 */
#include "src/memory/malloc/options.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_BYTES 64
#define MB_MAX ((int64_t)1 << 30)

void at_memory_options_default(at_memory_options *out) {
  *out = (at_memory_options){.max_split = SIZE_MAX,
                             .max_non_split_rounding = 20 * AT_MIB,
                             .large_segment = 20 * AT_MIB,
                             .expandable = true,
                             .pin_threads = 1,
                             .pin_most_kept = SIZE_MAX,
                             .pin_most_round = SIZE_MAX};
}

typedef struct setting {
  at_memory_options *options;
  const char *source; /* the variable's name, for messages */
  char key[TOKEN_BYTES], value[8 * TOKEN_BYTES];
} setting;

/* A key, how its value is read into the field `at` of the options, and for messages what it should be. */
typedef struct option {
  const char *key;
  attune_status (*read)(const setting *s, const struct option *o);
  size_t at;
  const char *right;
  int64_t least; /* MB */
} option;

static void *field(const setting *s, const option *o) {
  return (char *)s->options + o->at;
}

static attune_status refuse(const setting *s, const char *right) {
  return AT_INVALID("%s: %s is \"%.100s\"; should be %s", s->source, s->key, s->value, right);
}

static attune_status read_mb(const setting *s, const option *o) {
  int64_t value = 0;
  if (!at_parse_i64(&value, s->value) || value < o->least || value > MB_MAX) return refuse(s, o->right);
  *(size_t *)field(s, o) = (size_t)value * AT_MIB;
  return ATTUNE_OK;
}

/* "0.8": digits and one point, whatever the locale. */
static bool parse_fraction(double *out, const char *text) {
  double value = 0.0, unit = 1.0;
  bool point = false, digits = false;
  for (; *text; text++) {
    if (*text == '.' && !point) {
      point = true;
      continue;
    }
    if (*text < '0' || *text > '9' || unit > 1e15) return false;
    digits = true;
    value = value * 10.0 + (*text - '0');
    if (point) unit *= 10.0;
  }
  *out = value / unit;
  return digits;
}

static attune_status read_fraction(const setting *s, const option *o) {
  double *out = field(s, o);
  return parse_fraction(out, s->value) && *out > 0.0 && *out <= 1.0 ? ATTUNE_OK : refuse(s, o->right);
}

static attune_status read_bool(const setting *s, const option *o) {
  bool *out = field(s, o);
  *out = strcmp(s->value, "True") == 0 || strcmp(s->value, "true") == 0;
  if (*out || strcmp(s->value, "False") == 0 || strcmp(s->value, "false") == 0) return ATTUNE_OK;
  return refuse(s, o->right);
}

static attune_status read_threads(const setting *s, const option *o) {
  int64_t value = 0;
  if (!at_parse_i64(&value, s->value) || value < 1 || value > 128 || (value & (value - 1)) != 0)
    return refuse(s, o->right);
  *(int *)field(s, o) = (int)value;
  return ATTUNE_OK;
}

static bool is_division(int64_t n) {
  return n >= 1 && n <= 64 && (n & (n - 1)) == 0;
}

static int log2_of(uint64_t n) {
  return 63 - __builtin_clzll(n);
}

/* One item of the list, "256:4" (from 256 MB on) or ">:8" (from twice the last on). */
static bool set_division(at_memory_options *options, char *item, int *from) {
  char *colon = strchr(item, ':');
  int64_t megabytes = 0, n = 0;
  if (!colon || !at_parse_i64(&n, colon + 1) || !is_division(n)) return false;
  *colon = '\0';
  int first = *from + 1;
  if (strcmp(item, ">") != 0) {
    if (!at_parse_i64(&megabytes, item) || megabytes < 1 || megabytes > MB_MAX || (megabytes & (megabytes - 1)) != 0)
      return false;
    first = log2_of((uint64_t)megabytes) + 20;
    if (*from >= 0 && first <= *from) return false;
  }
  int start = *from < 0 ? 0 : first; /* the first item also serves what is smaller */
  for (int i = start; i < (int)sizeof options->divisions; i++) options->divisions[i] = (unsigned char)n;
  *from = first;
  return true;
}

static attune_status read_divisions(const setting *s, const option *o) {
  at_memory_options *options = s->options;
  int64_t n = 0;
  int from = -1;
  options->any_division = true;
  if (at_parse_i64(&n, s->value)) {
    if (!is_division(n)) return refuse(s, o->right);
    memset(options->divisions, (int)n, sizeof options->divisions);
    return ATTUNE_OK;
  }
  char list[sizeof s->value], *rest = list + 1;
  size_t length = strlen(s->value);
  memcpy(list, s->value, length + 1);
  if (length < 3 || list[0] != '[' || list[length - 1] != ']') return refuse(s, o->right);
  list[length - 1] = '\0';
  for (char *item; (item = strsep(&rest, ","));)
    if (!set_division(options, item, &from)) return refuse(s, o->right);
  return ATTUNE_OK;
}

static attune_status read_backend(const setting *s, const option *o) {
  s->options->no_cache = strcmp(s->value, "none") == 0;
  s->options->async = strcmp(s->value, "cudaMallocAsync") == 0;
  if (s->options->no_cache || s->options->async || strcmp(s->value, "caching") == 0 || strcmp(s->value, "native") == 0)
    return ATTUNE_OK;
  return refuse(s, o->right);
}

#define FRACTION "a number above 0 and at most 1"
#define SWITCH "true or false"
#define AT(field) offsetof(at_memory_options, field)

static const option options_known[] = {
    {"backend", read_backend, 0, "caching, none or cudaMallocAsync", 0},
    {"max_split_size_mb", read_mb, AT(max_split), "a whole number of MB above 20", 21},
    {"max_non_split_rounding_mb", read_mb, AT(max_non_split_rounding), "a whole number of MB above 20", 21},
    {"roundup_power2_divisions", read_divisions, 0,
     "a power of two up to 64, or a list like [256:1,512:2,>:4] with growing powers of two", 0},
    {"garbage_collection_threshold", read_fraction, AT(collect_above), FRACTION, 0},
    {"expandable_segments", read_bool, AT(expandable), SWITCH, 0},
    {"large_segment_size_mb", read_mb, AT(large_segment), "a whole number of MB, 2 or more", 2},
    {"per_process_memory_fraction", read_fraction, AT(fraction), FRACTION, 0},
    {"poison", read_bool, AT(poison), SWITCH, 0},
    {"nvtx", read_bool, AT(nvtx), SWITCH, 0},
    {"pinned_use_cuda_host_register", read_bool, AT(pin_register), SWITCH, 0},
    {"pinned_num_register_threads", read_threads, AT(pin_threads), "a power of two up to 128", 0},
    {"pinned_reserve_segment_size_mb", read_mb, AT(pin_segment), "a whole number of MB", 0},
    {"pinned_max_cached_size_mb", read_mb, AT(pin_most_kept), "a whole number of MB", 0},
    {"pinned_max_round_threshold_mb", read_mb, AT(pin_most_round), "a whole number of MB", 0},
};

const char *at_memory_options_key(size_t i) {
  return i < AT_COUNT(options_known) ? options_known[i].key : NULL;
}

/* Keys of PyTorch's allocator that change nothing here: a program's settings are to work as they are. */
static const struct {
  const char *key, *why;
} idle_keys[] = {
    {"release_lock_on_cudamalloc", "no lock is held during calls of the device"},
    {"release_lock_on_hipmalloc", "no lock is held during calls of the device"},
    {"graph_capture_record_stream_reuse", "in a capture, memory that other streams use is freed after the capture"},
    {"throw_on_cudamalloc_oom", "a request that fails returns OUT_OF_MEMORY"},
    {"pinned_use_hip_host_register", "CUDA allocates pinned memory"},
    {"pinned_use_background_threads", "the calling thread checks whether pinned memory is free again"},
};
static atomic_uint idle_met, idle_told; /* bits by place in idle_keys */

static bool is_idle(const char *key) {
  for (size_t i = 0; i < AT_COUNT(idle_keys); i++) {
    if (strcmp(key, idle_keys[i].key) != 0) continue;
    atomic_fetch_or(&idle_met, 1u << i);
    return true;
  }
  return false;
}

void at_memory_options_tell(void) {
  if (atomic_load_explicit(&idle_met, memory_order_relaxed) == 0) return;
  unsigned met = atomic_exchange(&idle_met, 0);
  met &= ~atomic_fetch_or(&idle_told, met);
  for (size_t i = 0; i < AT_COUNT(idle_keys); i++)
    if (met >> i & 1)
      at_log(ATTUNE_LOG_WARNING, "settings of the memory cache: %s is an option of PyTorch without effect here: %s",
             idle_keys[i].key, idle_keys[i].why);
}

/* All keys, for messages. */
static const char *keys(char *out, size_t size) {
  size_t at = 0;
  for (size_t i = 0; i < AT_COUNT(options_known); i++)
    (void)at_append(out, size, &at, "%s%s", i ? ", " : "", options_known[i].key);
  return out;
}

enum { KEYS_BYTES = 512 };

static attune_status apply(const setting *s) {
  char all[KEYS_BYTES];
  for (const option *o = options_known; o < options_known + AT_COUNT(options_known); o++)
    if (strcmp(s->key, o->key) == 0) return o->read(s, o);
  if (is_idle(s->key)) return ATTUNE_OK;
  return AT_INVALID("%s has no key \"%s\"; should be one of %s", s->source, s->key, keys(all, sizeof all));
}

/* Copies up to one of `ends` (commas inside brackets are text), leaving blanks out; NULL when it does not fit. */
static const char *take(char *out, size_t size, const char *text, const char *ends) {
  size_t length = 0;
  int depth = 0;
  for (; *text && (depth > 0 || !strchr(ends, *text)); text++) {
    depth += (*text == '[') - (*text == ']');
    if (*text == ' ') continue;
    if (length + 1 >= size) return NULL;
    out[length++] = *text;
  }
  out[length] = '\0';
  return text;
}

attune_status at_memory_options_parse(at_memory_options *out, const char *text, const char *name) {
  at_memory_options options = *out;
  setting s = {.options = &options, .source = name};
  char all[KEYS_BYTES];
  const char *at = text;
  while (*at) {
    at = take(s.key, sizeof s.key, at, ":,");
    if (!at || *at != ':' || !s.key[0])
      return AT_INVALID("%s is \"%.150s\"; should be key:value,key:value with keys %s", name, text,
                        keys(all, sizeof all));
    at = take(s.value, sizeof s.value, at + 1, ",");
    if (!at) return AT_INVALID("%s: the value of %s is too long", name, s.key);
    AT_TRY(apply(&s));
    if (*at == ',') at++;
  }
  if (options.async && (options.nvtx || options.poison))
    return AT_INVALID("%s: backend is cudaMallocAsync and %s is true; should be false, as the driver owns that memory",
                      name, options.nvtx ? "nvtx" : "poison");
  if (options.nvtx && options.poison)
    return AT_INVALID("%s: nvtx and poison are both true; should be only one, as poison writes into freed memory",
                      name);
  *out = options;
  return ATTUNE_OK;
}
