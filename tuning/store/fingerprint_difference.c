/* SPDX-License-Identifier: Apache-2.0
 * fingerprint_difference.c: how two fingerprints differ, part by part, in words. */
#include "tuning/store/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "tuning/store/decision.h"

/* Text of the differences so far. */
typedef struct sentence {
  char *out;
  size_t size, at;
  int count;
} sentence;

static sentence begin(char *out, size_t size) {
  if (size) *out = '\0';
  return (sentence){.out = out, .size = size};
}

static void say(sentence *s, const char *what, const char *there, const char *here) {
  (void)at_append(s->out, s->size, &s->at, "%s%s %s there, %s here", s->count++ ? "; " : "", what,
                  *there ? there : "none", *here ? here : "none");
}

/* --- the device --- */

typedef enum part_kind {
  PART_DEVICE,
  PART_FEATURES,
  PART_PROCESSORS,
  PART_CACHE,
  PART_CAPABILITY,
  PART_DRIVER,
  PART_MEASURE,
  PART_OTHER,
  PART_KINDS
} part_kind;

/* Marks of a part: how it begins, or how it ends. */
static const struct {
  const char *name, *begin, *end;
} parts[PART_KINDS] = {[PART_DEVICE] = {"device", NULL, NULL},
                       [PART_FEATURES] = {"features", NULL, NULL},
                       [PART_PROCESSORS] = {"processors", NULL, " processors"},
                       [PART_CACHE] = {"cache", NULL, " KiB cache"},
                       [PART_CAPABILITY] = {"compute capability", "cc ", NULL},
                       [PART_DRIVER] = {"driver", "driver ", NULL},
                       [PART_MEASURE] = {"attune's way of measuring", "attune ", NULL},
                       [PART_OTHER] = {"other parts", NULL, NULL}};

static part_kind kind_of(int index, const char *part) {
  const size_t length = strlen(part);
  for (int kind = PART_PROCESSORS; kind < PART_OTHER; kind++) {
    const char *begin = parts[kind].begin, *end = parts[kind].end;
    if (begin && strncmp(part, begin, strlen(begin)) == 0) return (part_kind)kind;
    if (end && length > strlen(end) && strcmp(part + length - strlen(end), end) == 0) return (part_kind)kind;
  }
  return index == 0 ? PART_DEVICE : index == 1 ? PART_FEATURES : PART_OTHER;
}

/* The device's part of a fingerprint by kind; "" where it has none. */
typedef struct split {
  char text[PART_KINDS][512];
} split;

static void split_device(const char *fingerprint, split *out) {
  char copy[1024];
  size_t used = 0;
  memset(out, 0, sizeof *out);
  (void)at_append(copy, sizeof copy, &used, "%.*s", (int)at_fingerprint_device_chars(fingerprint), fingerprint);
  int index = 0;
  for (char *part = copy, *next; part; part = next, index++) {
    next = strstr(part, "; ");
    if (next) {
      *next = '\0';
      next += 2;
    }
    const part_kind kind = kind_of(index, part);
    size_t at = strlen(out->text[kind]);
    const size_t skip = parts[kind].begin ? strlen(parts[kind].begin) : 0;
    size_t length = strlen(part);
    if (parts[kind].end) length -= strlen(parts[kind].end);
    (void)at_append(out->text[kind], sizeof out->text[kind], &at, "%s%.*s", at ? " " : "", (int)(length - skip),
                    part + skip);
  }
}

static bool has_word(const char *text, const char *word, size_t length) {
  for (const char *at = text; *at;) {
    const size_t chars = strcspn(at, " ");
    if (chars == length && memcmp(at, word, length) == 0) return true;
    at += chars + (at[chars] == ' ');
  }
  return false;
}

/* The words of `of` that `other` lacks. */
static void words_without(const char *of, const char *other, char *out, size_t size) {
  size_t at = 0;
  *out = '\0';
  while (*of) {
    const size_t chars = strcspn(of, " ");
    if (!has_word(other, of, chars)) (void)at_append(out, size, &at, "%s%.*s", at ? " " : "", (int)chars, of);
    of += chars + (of[chars] == ' ');
  }
}

int at_fingerprint_difference(const char *there, const char *here, char *out, size_t size) {
  split a, b;
  sentence s = begin(out, size);
  split_device(there, &a);
  split_device(here, &b);
  for (int kind = 0; kind < PART_KINDS; kind++) {
    char left[512], right[512];
    if (strcmp(a.text[kind], b.text[kind]) == 0) continue;
    const bool words = kind == PART_FEATURES || kind == PART_OTHER;
    if (words) words_without(a.text[kind], b.text[kind], left, sizeof left);
    if (words) words_without(b.text[kind], a.text[kind], right, sizeof right);
    say(&s, parts[kind].name, words ? left : a.text[kind], words ? right : b.text[kind]);
  }
  return s.count;
}

/* --- implementations --- */

/* An implementation in a fingerprint: "NAME VERSION WORD WORD". */
typedef struct entry {
  bool there;   /* false: the fingerprint knows its implementations, and this is none of them */
  bool partial; /* the fingerprint names no implementations */
  int version;
  char words[AT_DIFFERENCE_CHARS];
} entry;

static entry entry_of(const char *fingerprint, const char *name) {
  const size_t chars = strlen(name);
  const char *all = at_fingerprint_implementations(fingerprint);
  entry e = {.there = !*all, .partial = !*all};
  for (const char *at = all, *end; *at; at = end + 2) {
    end = strstr(at, "; ");
    if (!end) end = at + strlen(at);
    if (strncmp(at, name, chars) == 0 && at[chars] == ' ') {
      const char *words = at + chars + 1;
      int64_t version = 0;
      e.there = true;
      words += at_read_i64(&version, words);
      e.version = (int)version;
      size_t used = 0;
      words += strspn(words, " ");
      (void)at_append(e.words, sizeof e.words, &used, "%.*s", words < end ? (int)(end - words) : 0, words);
      return e;
    }
    if (!*end) break;
  }
  return e;
}

/* The word of `words` that is of the same name as `like` ("nvrtc-13.0"), or "". */
static void word_like(const char *words, const char *like, char *out, size_t size) {
  const size_t name = strcspn(like, "-") + 1;
  *out = '\0';
  for (const char *at = words; *at;) {
    const size_t chars = strcspn(at, " ");
    size_t used = 0;
    if (chars >= name && strncmp(at, like, name) == 0) {
      (void)at_append(out, size, &used, "%.*s", (int)(chars - name), at + name);
      return;
    }
    at += chars + (at[chars] == ' ');
  }
}

/* Dependencies of `here` that had another version there. */
static void compare_words(sentence *s, const char *name, const entry *there, const char *here) {
  char what[96], now[96], before[96];
  for (const char *at = here; *at;) {
    const size_t chars = strcspn(at, " "), library = strcspn(at, "- ");
    size_t used = 0;
    word_like(there->words, at, before, sizeof before);
    (void)at_append(now, sizeof now, &used, "%.*s", (int)(chars - library - (library < chars)),
                    at + library + (library < chars));
    used = 0;
    (void)at_append(what, sizeof what, &used, "%s's %.*s", name, (int)library, at);
    if (strcmp(before, now) != 0 && !(there->partial && !*before)) say(s, what, before, now);
    at += chars + (at[chars] == ' ');
  }
}

static void compare_version(sentence *s, const char *name, int there, int here) {
  char what[64], before[16] = "", now[16];
  size_t used = 0;
  if (there == here) return;
  (void)at_append(what, sizeof what, &used, "%s's version", name);
  used = 0;
  (void)at_append(now, sizeof now, &used, "%d", here);
  used = 0;
  (void)at_append(before, sizeof before, &used, "%d", there);
  say(s, what, before, now);
}

/* Dependencies of the implementation here. */
static const char *depends(const at_implementation *implementation, const at_configuration *configuration,
                           attune_device *device, char words[AT_DIFFERENCE_CHARS]) {
  const at_message kept = at_message_keep(); /* a library that is not here is part of it */
  words[0] = '\0';
  if (implementation->depends)
    (void)implementation->depends(implementation, configuration, device, words, AT_DIFFERENCE_CHARS);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return words;
}

static void compare_implementation(sentence *s, const at_op *op, attune_device *device, const char *fingerprint,
                                   const attune_decision *winner) {
  at_configuration configuration;
  char words[AT_DIFFERENCE_CHARS];
  const at_implementation *implementation = at_registry_find(op, winner->implementation, device);
  const entry there = entry_of(fingerprint, winner->implementation);
  if (!implementation) {
    say(s, "implementation", winner->implementation, "");
    return;
  }
  compare_version(s, implementation->name, winner->implementation_version, implementation->version);
  (void)at_copy_text(configuration.text, sizeof configuration.text, winner->configuration);
  compare_words(s, implementation->name, &there, depends(implementation, &configuration, device, words));
}

int at_implementation_difference(const at_op *op, attune_device *device, const char *fingerprint,
                                 const attune_decision *winner, char *out, size_t size) {
  sentence s = begin(out, size);
  compare_implementation(&s, op, device, fingerprint, winner);
  return s.count;
}

static void compare_threads(sentence *s, const attune_device *device, const char *fingerprint) {
  const int there = at_fingerprint_threads(fingerprint), here = at_cpu_count();
  char before[16], now[16];
  if (device->properties.kind != ATTUNE_DEVICE_HOST || there < 1 || there == here) return;
  snprintf(before, sizeof before, "%d", there);
  snprintf(now, sizeof now, "%d", here);
  say(s, "CPU threads", before, now);
}

int at_winner_difference(const at_op *op, attune_device *device, const char *fingerprint, const attune_decision *winner,
                         char *out, size_t size) {
  sentence s = begin(out, size);
  compare_threads(&s, device, fingerprint);
  compare_implementation(&s, op, device, fingerprint, winner);
  return s.count;
}

static bool would_race(const at_implementation *implementation, const void *problem, attune_device *device) {
  return !implementation->fallback && at_registry_usable(implementation, problem, device);
}

int at_rivals_difference(const at_op *op, const void *problem, attune_device *device, const char *fingerprint,
                         const attune_decision *winner, char *out, size_t size) {
  sentence s = begin(out, size);
  const at_message kept = at_message_keep();
  const at_implementation *base = at_registry_default(op, problem, device);
  if (base && winner->default_implementation[0] && !at_decision_default_is(winner, base->name))
    say(&s, "default", winner->default_implementation, base->name);
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    const char *name = implementation->name;
    if (implementation != base && !would_race(implementation, problem, device)) continue;
    const entry there = entry_of(fingerprint, name);
    char words[AT_DIFFERENCE_CHARS];
    if (!there.there) say(&s, "implementation", "", name);
    if (!there.there) continue;
    if (!there.partial) compare_version(&s, name, there.version, implementation->version);
    compare_words(&s, name, &there, depends(implementation, NULL, device, words));
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
  return s.count;
}
