/* SPDX-License-Identifier: Apache-2.0
 * options.c: parses the keys of ATTUNE_ALLOC, which have the names that PyTorch's PYTORCH_CUDA_ALLOC_CONF gives them.
 */
#include "src/memory/malloc/options.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEYS                                                                                                        \
  "backend, max_split_size_mb, max_non_split_rounding_mb, roundup_power2_divisions, garbage_collection_threshold, " \
  "expandable_segments, "                                                                                           \
  "large_segment_size_mb, per_process_memory_fraction, poison, nvtx, pinned_use_cuda_host_register, "                \
  "pinned_num_register_threads, pinned_reserve_segment_size_mb, pinned_max_cached_size_mb, "                        \
  "pinned_max_round_threshold_mb"
#define TOKEN_BYTES 64
#define MB_MAX ((int64_t)1 << 30)

void at_memory_options_default(at_memory_options *out) {
  *out = (at_memory_options){
      .max_split = SIZE_MAX, .max_non_split_rounding = 20 * AT_MIB, .large_segment = 20 * AT_MIB, .expandable = true,
      .pin_threads = 1, .pin_most_kept = SIZE_MAX, .pin_most_round = SIZE_MAX};
}

typedef struct setting {
  at_memory_options *options;
  const char *source; /* the variable's name, for messages */
  char key[TOKEN_BYTES], value[8 * TOKEN_BYTES];
} setting;

static attune_status refuse(const setting *s, const char *right) {
  return AT_INVALID("%s: %s is \"%.100s\"; should be %s", s->source, s->key, s->value, right);
}

static attune_status read_mb(const setting *s, size_t *out, int64_t least, const char *right) {
  int64_t value = 0;
  if (!at_parse_i64(&value, s->value) || value < least || value > MB_MAX) return refuse(s, right);
  *out = (size_t)value * AT_MIB;
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

static attune_status read_fraction(const setting *s, double *out) {
  if (parse_fraction(out, s->value) && *out > 0.0 && *out <= 1.0) return ATTUNE_OK;
  return refuse(s, "a number above 0 and at most 1");
}

static attune_status read_bool(const setting *s, bool *out) {
  *out = strcmp(s->value, "True") == 0 || strcmp(s->value, "true") == 0;
  if (*out || strcmp(s->value, "False") == 0 || strcmp(s->value, "false") == 0) return ATTUNE_OK;
  return refuse(s, "true or false");
}

static attune_status read_threads(const setting *s, int *out) {
  static const char right[] = "a power of two up to 128";
  int64_t value = 0;
  if (!at_parse_i64(&value, s->value) || value < 1 || value > 128 || (value & (value - 1)) != 0)
    return refuse(s, right);
  *out = (int)value;
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

static attune_status read_divisions(setting *s) {
  static const char right[] = "a power of two up to 64, or a list like [256:1,512:2,>:4] with growing powers of two";
  at_memory_options *options = s->options;
  int64_t n = 0;
  int from = -1;
  options->any_division = true;
  if (at_parse_i64(&n, s->value)) {
    if (!is_division(n)) return refuse(s, right);
    memset(options->divisions, (int)n, sizeof options->divisions);
    return ATTUNE_OK;
  }
  char list[sizeof s->value], *rest = list + 1;
  size_t length = strlen(s->value);
  memcpy(list, s->value, length + 1);
  if (length < 3 || list[0] != '[' || list[length - 1] != ']') return refuse(s, right);
  list[length - 1] = '\0';
  for (char *item; (item = strsep(&rest, ","));)
    if (!set_division(options, item, &from)) return refuse(s, right);
  return ATTUNE_OK;
}

static attune_status read_backend(const setting *s) {
  s->options->no_cache = strcmp(s->value, "none") == 0;
  s->options->async = strcmp(s->value, "cudaMallocAsync") == 0;
  if (s->options->no_cache || s->options->async || strcmp(s->value, "caching") == 0 || strcmp(s->value, "native") == 0)
    return ATTUNE_OK;
  return refuse(s, "caching, none or cudaMallocAsync");
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

/* False: none of these. */
static bool apply_pinned(const setting *s, attune_status *status) {
  static const char right[] = "a whole number of MB";
  at_memory_options *o = s->options;
  if (strcmp(s->key, "pinned_use_cuda_host_register") == 0)
    *status = read_bool(s, &o->pin_register);
  else if (strcmp(s->key, "pinned_num_register_threads") == 0)
    *status = read_threads(s, &o->pin_threads);
  else if (strcmp(s->key, "pinned_reserve_segment_size_mb") == 0)
    *status = read_mb(s, &o->pin_segment, 0, right);
  else if (strcmp(s->key, "pinned_max_cached_size_mb") == 0)
    *status = read_mb(s, &o->pin_most_kept, 0, right);
  else if (strcmp(s->key, "pinned_max_round_threshold_mb") == 0)
    *status = read_mb(s, &o->pin_most_round, 0, right);
  else
    return false;
  return true;
}

static attune_status apply(setting *s) {
  at_memory_options *o = s->options;
  attune_status status = ATTUNE_OK;
  if (strcmp(s->key, "backend") == 0) return read_backend(s);
  if (strcmp(s->key, "max_split_size_mb") == 0) return read_mb(s, &o->max_split, 21, "a whole number of MB above 20");
  if (strcmp(s->key, "max_non_split_rounding_mb") == 0)
    return read_mb(s, &o->max_non_split_rounding, 21, "a whole number of MB above 20");
  if (strcmp(s->key, "large_segment_size_mb") == 0)
    return read_mb(s, &o->large_segment, 2, "a whole number of MB, 2 or more");
  if (strcmp(s->key, "roundup_power2_divisions") == 0) return read_divisions(s);
  if (strcmp(s->key, "garbage_collection_threshold") == 0) return read_fraction(s, &o->collect_above);
  if (strcmp(s->key, "per_process_memory_fraction") == 0) return read_fraction(s, &o->fraction);
  if (strcmp(s->key, "expandable_segments") == 0) return read_bool(s, &o->expandable);
  if (strcmp(s->key, "poison") == 0) return read_bool(s, &o->poison);
  if (strcmp(s->key, "nvtx") == 0) return read_bool(s, &o->nvtx);
  if (strncmp(s->key, "pinned_", 7) == 0 && apply_pinned(s, &status)) return status;
  if (is_idle(s->key)) return ATTUNE_OK;
  return AT_INVALID("%s has no key \"%s\"; should be one of " KEYS, s->source, s->key);
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
  const char *at = text;
  while (*at) {
    at = take(s.key, sizeof s.key, at, ":,");
    if (!at || *at != ':' || !s.key[0])
      return AT_INVALID("%s is \"%.150s\"; should be key:value,key:value with keys " KEYS, name, text);
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
