/* SPDX-License-Identifier: Apache-2.0
 * gate_functions.c: 52 small functions as cases for `attune bench`, to try the gate itself on: how often does it see a
 * change where there is none, or miss one that is there?
 *
 *   bench_gate_functions [--slow=FILE]
 *
 * Where FILE exists each of its lines CASE PERCENT names a case that really does so much more work. Two sides that
 * differ so, where folder `slow` has a file `which`, and folder `same` has none:
 *   attune bench --program 'bench_gate_functions --slow={build}/which' --build slow --against same --save slower.db */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attune/attune.h>
#include <attune/tools.h>

enum { ROOM = 1 << 18, CASES_MOST = 64 };

/* Input of all cases, and a sink for their results, so that the compiler keeps the work. */
static double doubles[ROOM];
static float floats[ROOM], more_floats[ROOM];
static unsigned words[ROOM], order[ROOM];
static char bytes[ROOM], same_bytes[ROOM], more_bytes[ROOM];
static volatile double result;

/* ---- functions: work that grows with n ---- */

static double copy(size_t n) {
  memcpy(more_bytes, bytes, n);
  return more_bytes[n / 2];
}

static double fill(size_t n) {
  memset(more_bytes, (int)n & 127, n);
  return more_bytes[n / 3];
}

static double compare(size_t n) {
  return memcmp(bytes, same_bytes, n);
}

static double sum(size_t n) {
  double all = 0;
  for (size_t i = 0; i < n; i++) all += doubles[i];
  return all;
}

static double dot(size_t n) {
  float all = 0;
  for (size_t i = 0; i < n; i++) all += floats[i] * more_floats[i];
  return (double)all;
}

static double axpy(size_t n) {
  for (size_t i = 0; i < n; i++) more_floats[i] = 0.5f * more_floats[i] + floats[i];
  return (double)more_floats[n - 1];
}

static double exponentials(size_t n) {
  double all = 0;
  for (size_t i = 0; i < n; i++) all += exp(doubles[i]);
  return all;
}

static double sines(size_t n) {
  double all = 0;
  for (size_t i = 0; i < n; i++) all += sin(doubles[i]);
  return all;
}

static double divisions(size_t n) {
  double x = 1.7;
  for (size_t i = 0; i < n; i++) x = 1.0 / (x + doubles[i & 255]);
  return x;
}

/* Each step needs the one before: a walk through memory in an order that cannot be guessed. */
static double chase(size_t n) {
  unsigned at = 0;
  for (size_t i = 0; i < n; i++) at = order[at];
  return at;
}

static double hash(size_t n) {
  unsigned h = 2166136261u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * 16777619u;
  return h;
}

static double count_bits(size_t n) {
  int all = 0;
  for (size_t i = 0; i < n; i++) all += __builtin_popcount(words[i]);
  return all;
}

/* As good as random: the CPU guesses half of the branches wrong. */
static double branches(size_t n) {
  double all = 0;
  for (size_t i = 0; i < n; i++) {
    if (words[i] & 1)
      all += doubles[i & 1023];
    else
      all -= 1.0;
  }
  return all;
}

static double format(size_t n) {
  char text[64];
  int all = 0;
  for (size_t i = 0; i < n; i++) all += snprintf(text, sizeof text, "%u %.3f", words[i], doubles[i]);
  return all;
}

static double allocate(size_t n) {
  void *kept[64];
  for (size_t i = 0; i < n; i++) {
    kept[i % 64] = malloc(16 + (words[i] & 1023));
    if (i % 64 == 63)
      for (size_t j = 0; j < 64; j++) free(kept[j]);
  }
  for (size_t j = 0; j < n % 64; j++) free(kept[j]);
  return (double)n;
}

static int by_value(const void *a, const void *b) {
  const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
  return (x > y) - (x < y);
}

static double search(size_t n) {
  double all = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t wanted = i * 2654435761u % 4096;
    size_t low = 0, high = 4096;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (middle < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    all += (double)low;
  }
  return all;
}

static double sort(size_t n) {
  static unsigned sorted[ROOM];
  memcpy(sorted, words, n * sizeof *words);
  qsort(sorted, n, sizeof *sorted, by_value);
  return sorted[n / 2];
}

/* ---- cases ---- */

typedef struct kind {
  const char *name;
  double (*function)(size_t n);
  size_t sizes[4]; /* 0: no more */
} kind;

static const kind kinds[] = {{"copy", copy, {2048, 16384, 65536, 200000}},
                             {"fill", fill, {2048, 16384, 65536, 200000}},
                             {"compare", compare, {16384, 65536, 200000}},
                             {"sum", sum, {1024, 4096, 16384, 100000}},
                             {"dot", dot, {1024, 4096, 16384, 100000}},
                             {"axpy", axpy, {1024, 4096, 16384, 100000}},
                             {"exp", exponentials, {1024, 8192}},
                             {"sin", sines, {1024, 8192}},
                             {"divide", divisions, {1024, 8192, 32768}},
                             {"chase", chase, {1024, 8192, 32768}},
                             {"hash", hash, {4096, 16384, 65536}},
                             {"bits", count_bits, {4096, 16384, 65536}},
                             {"branches", branches, {4096, 16384, 65536}},
                             {"format", format, {256, 1024}},
                             {"allocate", allocate, {256, 1024, 8192}},
                             {"search", search, {256, 1024, 8192}},
                             {"sort", sort, {512, 4096}}};

typedef struct work {
  double (*function)(size_t n);
  size_t n;
} work;

static attune_status run(void *arg, attune_stream *stream) {
  const work *w = arg;
  (void)stream;
  result = w->function(w->n);
  return ATTUNE_OK;
}

static void make_data(void) {
  unsigned state = 12345;
  for (int i = 0; i < ROOM; i++) {
    state = state * 1664525u + 1013904223u;
    words[i] = state >> 8;
    doubles[i] = (double)words[i] / 16777216.0;
    floats[i] = (float)doubles[i];
    bytes[i] = same_bytes[i] = (char)(words[i] & 127);
    order[i] = (unsigned)i;
  }
  for (unsigned i = ROOM - 1; i > 0; i--) { /* one circle through all (Sattolo, 1986) */
    const unsigned other = words[i] % i, kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

typedef struct slowing {
  char name[64];
  double percent;
} slowing;

/* The lines "NAME PERCENT" of the file; the count. */
static int read_slowing(slowing *out, int most, int argc, char **argv) {
  static const char option[] = "--slow=";
  if (argc < 2 || strncmp(argv[1], option, sizeof option - 1) != 0) return 0;
  FILE *file = fopen(argv[1] + sizeof option - 1, "r");
  if (!file) return 0;
  int count = 0;
  while (count < most && fscanf(file, "%63s %lf", out[count].name, &out[count].percent) == 2) count++;
  fclose(file);
  return count;
}

static size_t size_of(const char *name, size_t n, const slowing *slow, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(name, slow[i].name) == 0) return (size_t)((double)n * (1.0 + slow[i].percent / 100.0) + 0.5);
  return n;
}

int main(int argc, char **argv) {
  static work works[CASES_MOST];
  slowing slow[CASES_MOST];
  const int slow_count = read_slowing(slow, CASES_MOST, argc, argv);
  attune_bench *bench = NULL;
  size_t count = 0;
  make_data();
  if (attune_bench_create(&bench) != ATTUNE_OK) return 1;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    for (size_t i = 0; i < 4 && kinds[k].sizes[i] && count < CASES_MOST; i++) {
      char name[64];
      snprintf(name, sizeof name, "%s/%zu", kinds[k].name, kinds[k].sizes[i]);
      works[count] = (work){kinds[k].function, size_of(name, kinds[k].sizes[i], slow, slow_count)};
      const attune_bench_case c = {.size = sizeof c, .name = name, .run = run, .arg = &works[count++]};
      if (attune_bench_add(bench, &c) == ATTUNE_OK) continue;
      fprintf(stderr, "bench_gate_functions: %s\n", attune_last_message());
      return 1;
    }
  return attune_bench_main(bench, argc, argv);
}
