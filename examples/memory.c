/* SPDX-License-Identifier: Apache-2.0
 * memory.c: limits and statistics of a device's memory, and its end: first the program gives back what it can spare,
 * then a failed request leaves a snapshot. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, TOO_MUCH = 1 << 26 };
static const char *const SNAPSHOT = "attune-snapshot.json";

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

typedef struct program {
  attune_stream *stream;
  void *spare; /* what it can do without */
  size_t missed;
} program;

/* The cache has no block of this size. */
static int give_back(void *user, attune_device *device, size_t bytes) {
  program *p = user;
  (void)device, (void)bytes;
  if (!p->spare) return 0;
  check(attune_free(p->spare, p->stream));
  p->spare = NULL;
  return 1;
}

static void save_snapshot(void *user, attune_device *device, const attune_memory_failure *failure) {
  ((program *)user)->missed = failure->requested_bytes;
  check(attune_memory_snapshot_save(SNAPSHOT, device)); /* python3 -m attune.snapshot converts it for PyTorch's page */
}

static int find_peak(void *user, const char *name, int64_t value) {
  if (strcmp(name, "allocated_bytes.all.peak") != 0) return 0;
  *(int64_t *)user = value;
  return 1;
}

int main(void) {
  program p = {NULL, NULL, 0};
  attune_device *device = NULL;
  attune_memory_statistics s = {0};
  attune_history_options history = ATTUNE_HISTORY_OPTIONS_INIT;
  double fraction = 0.0;
  void *numbers = NULL, *base = NULL, *more = NULL;
  size_t usable = 0;
  int64_t peak = 0;
  char *text = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&p.stream, device));
  check(attune_memory_set_fraction(device, 0.5)); /* the rest is for other processes */
  check(attune_memory_get_fraction(device, &fraction));
  check(attune_memory_add_callback(device, give_back, &p));
  check(attune_memory_add_observer(device, save_snapshot, &p));

  history.entries = 1000;
  check(attune_memory_record_history(device, &history));
  attune_memory_annotate("loading"); /* the label of this thread's events in the snapshot */
  check(attune_alloc(&numbers, p.stream, BYTES - 1));
  check(attune_alloc(&p.spare, p.stream, BYTES));
  attune_memory_annotate(NULL);
  check(attune_memory_range(numbers, &base, &usable));
  check(attune_memory_get_statistics(device, &s));
  check(attune_memory_each_statistic(device, find_peak, &peak)); /* by PyTorch's names */
  printf("%s: %zu of %d bytes usable, at most %.0f %% of the device; %llu bytes allocated, the peak was %lld\n",
         attune_device_name(device), usable, BYTES - 1, 100.0 * fraction,
         (unsigned long long)s.allocated_bytes[ATTUNE_MEMORY_ALL].current, (long long)peak);

  check(attune_memory_set_limit(device, s.reserved_bytes[ATTUNE_MEMORY_ALL].current)); /* no more than there is */
  const attune_status failed = attune_alloc(&more, p.stream, TOO_MUCH);
  printf("%s\n", attune_last_message());
  check(attune_memory_set_limit(device, 0));
  check(attune_memory_record_history(device, NULL));
  const int snapshot = remove(SNAPSHOT) == 0;

  check(attune_free(numbers, p.stream));
  check(attune_stream_synchronize(p.stream));
  check(attune_memory_empty_cache(device));
  check(attune_memory_reset_peaks(device)); /* count from here on */
  check(attune_memory_reset_accumulated(device));
  check(attune_memory_snapshot(&text, device)); /* as in the file */
  printf("%zu characters of JSON\n", strlen(text));
  free(text);
  check(attune_memory_summary(&text, device, 1));
  printf("%s", text);
  free(text);
  check(attune_memory_remove_callback(device, give_back, &p));
  check(attune_memory_remove_observer(device, save_snapshot, &p));
  attune_stream_destroy(p.stream);
  return failed == ATTUNE_OUT_OF_MEMORY && p.missed == TOO_MUCH && !p.spare && snapshot && base == numbers ? 0 : 1;
}
