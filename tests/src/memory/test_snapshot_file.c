/* SPDX-License-Identifier: Apache-2.0
 * test_snapshot_file.c: statistics by PyTorch's names; snapshot files as Python reads them, with frames; what is
 * recorded. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <unistd.h>

#include <jansson.h>

#define KIB ((size_t)1 << 10)

static attune_device *host;
static attune_stream *stream;
static char path[] = "/tmp/attune_snapshot_XXXXXX";

FIXTURE(set_up) {
  const int file = mkstemp(path);
  if (file < 0 || close(file) != 0) return -1;
  return attune_device_get(&host, "host") == ATTUNE_OK && attune_stream_create(&stream, host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(tear_down) {
  attune_stream_destroy(stream);
  return unlink(path);
}

/* The file as attune.snapshot of the Python package makes PyTorch's of it, read by Python; it is also what the file
 * says. */
static json_t *load(void) {
  static const char program[] = "import json,pickle,sys\n"
                                "root=pickle.load(open(sys.argv[1]+'.pickle','rb'))\n"
                                "assert all(type(s['segment_pool_id']) is tuple for s in root['segments'])\n"
                                "assert json.loads(json.dumps(root))==json.load(open(sys.argv[1]))\n"
                                "json.dump(root,sys.stdout)\n";
  char command[2048];
  json_error_t error;
  snprintf(command, sizeof command,
           "python3 " AT_SOURCE_DIR "/bindings/python/attune/snapshot.py %s %s.pickle && python3 -c \"%s\" %s", path,
           path, program, path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  json_t *root = json_loadf(pipe, 0, &error);
  const int status = pclose(pipe);
  snprintf(command, sizeof command, "%s.pickle", path);
  (void)unlink(command);
  if (!root || status != 0) fail_msg("python3 ended with %d; line %d: %s", status, error.line, error.text);
  return root;
}

/* Nothing is written for what is no snapshot. */
TEST(other_files_are_refused) {
  static const char *const texts[] = {"", "[1]", "{\"segments\": []}", "\377"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char command[1024], said[512] = "";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(texts[i], file) >= 0 && fclose(file) == 0);
    snprintf(command, sizeof command,
             "python3 " AT_SOURCE_DIR
             "/bindings/python/attune/snapshot.py %s %s.pickle 2>&1; test ! -e %s.pickle && echo none",
             path, path, path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
    if (!strstr(said, "attune.snapshot: /tmp/") || !strstr(said, "none") || strstr(said, "Traceback"))
      fail_msg("%zu: %s", i, said);
  }
}

static json_int_t number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) fail_msg("%s is no whole number", key);
  return json_integer_value(value);
}

static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  if (!value) fail_msg("%s is no text", key);
  return value ? value : "";
}

/* ---- statistics by name ---- */

typedef struct seen {
  char last[64];
  int count, most; /* most: where the walk is ended; 0: nowhere */
  const char *wanted;
  int64_t value;
} seen;

static int see(void *user, const char *name, int64_t value) {
  seen *s = user;
  if (strcmp(s->last, name) >= 0) fail_msg("%s comes after %s", name, s->last);
  snprintf(s->last, sizeof s->last, "%s", name);
  if (s->wanted && strcmp(s->wanted, name) == 0) s->value = value;
  return ++s->count == s->most;
}

static int64_t of_memory(const char *name) {
  seen s = {.wanted = name, .value = -77};
  OK(attune_memory_each_statistic(host, see, &s));
  assert_int_equal(s.count, 9 * 12 + 2 * 4 + 7);
  assert_int_not_equal(s.value, -77);
  return s.value;
}

static int64_t of_pinned(const char *name) {
  seen s = {.wanted = name, .value = -77};
  OK(attune_pinned_each_statistic(host, see, &s));
  assert_int_equal(s.count, 6 * 4 + 2 * 5 + 2);
  assert_int_not_equal(s.value, -77);
  return s.value;
}

/* Each name has the figure of the structure's field. */
TEST(names_are_those_of_fields) {
  attune_memory_statistics s = {0};
  void *p = NULL;
  OK(attune_alloc(&p, stream, 3000 * KIB));
  OK(attune_memory_get_statistics(host, &s));
  const struct {
    const char *name;
    const attune_memory_figure *figures;
  } groups[] = {{"allocation", s.allocation},
                {"allocated_bytes", s.allocated_bytes},
                {"requested_bytes", s.requested_bytes},
                {"segment", s.segment},
                {"reserved_bytes", s.reserved_bytes},
                {"active", s.active},
                {"active_bytes", s.active_bytes},
                {"inactive_split", s.inactive_split},
                {"inactive_split_bytes", s.inactive_split_bytes}};
  static const char *const kinds[] = {"all", "small_pool", "large_pool"};
  assert_true(s.allocation[ATTUNE_MEMORY_ALL].current == 1 && s.segment[ATTUNE_MEMORY_LARGE].peak >= 1);
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    for (int kind = ATTUNE_MEMORY_ALL; kind <= ATTUNE_MEMORY_LARGE; kind++) {
      char name[64];
      snprintf(name, sizeof name, "%s.%s.peak", groups[i].name, kinds[kind]);
      assert_int_equal(of_memory(name), groups[i].figures[kind].peak);
      snprintf(name, sizeof name, "%s.%s.allocated", groups[i].name, kinds[kind]);
      assert_int_equal(of_memory(name), groups[i].figures[kind].allocated);
    }
  assert_int_equal(of_memory("oversize_allocations.allocated"), s.oversize_allocations.allocated);
  assert_int_equal(of_memory("oversize_segments.peak"), s.oversize_segments.peak);
  assert_int_equal(of_memory("max_split_size"), s.max_split_bytes);
  assert_int_equal(of_memory("num_alloc_retries"), s.alloc_retries);
  assert_int_equal(of_memory("num_device_alloc"), s.device_allocs);
  assert_int_equal(of_memory("num_device_free"), s.device_frees);
  assert_int_equal(of_memory("num_oom_rejections"), s.limit_rejections);
  assert_int_equal(of_memory("num_ooms"), s.out_of_memory);
  assert_int_equal(of_memory("num_sync_all_streams"), s.synchronizations);
  OK(attune_free(p, stream));
}

TEST(names_of_pinned_memory) {
  attune_pinned_statistics s = {0};
  void *p = NULL;
  OK(attune_pinned_alloc(&p, host, 3000 * KIB));
  OK(attune_pinned_free(p));
  OK(attune_pinned_empty_cache(host));
  OK(attune_pinned_get_statistics(host, &s));
  assert_true(s.host_frees >= 1 && s.host_free_ns >= s.host_free_most_ns);
  assert_true(s.host_free_most_ns >= s.host_free_least_ns);
  assert_true(s.host_free_least_ns > 0);
  assert_int_equal(of_pinned("host_free_time.total"), s.host_free_ns / 1000);
  assert_int_equal(of_pinned("host_free_time.min"), s.host_free_least_ns / 1000);
  assert_int_equal(of_pinned("host_free_time.max"), s.host_free_most_ns / 1000);
  assert_int_equal(of_pinned("host_free_time.count"), s.host_frees);
  assert_int_equal(of_pinned("host_alloc_time.total"), s.host_alloc_ns / 1000);
  assert_int_equal(of_pinned("host_alloc_time.max"), s.host_alloc_most_ns / 1000);
  assert_int_equal(of_pinned("num_host_alloc"), s.host_allocs);
  assert_int_equal(of_pinned("num_host_free"), s.host_frees);
  assert_int_equal(of_pinned("allocations.allocated"), s.allocation.allocated);
  assert_int_equal(of_pinned("active_requests.allocated"), s.active.allocated);
  assert_int_equal(of_pinned("allocated_bytes.peak"), s.allocated_bytes.peak);
  assert_int_equal(of_pinned("active_bytes.peak"), s.active_bytes.peak);
  assert_int_equal(of_pinned("segment.peak"), s.segment.peak);
  assert_int_equal(of_pinned("reserved_bytes.peak"), s.reserved_bytes.peak);
}

TEST(statistics_have_names) {
  void *small = NULL, *large = NULL, *pinned = NULL;
  const int64_t before = of_memory("allocation.all.allocated");
  OK(attune_alloc(&small, stream, 1000));
  OK(attune_alloc(&large, stream, 5000 * KIB));
  assert_int_equal(of_memory("allocated_bytes.all.current"), 1024 + 5000 * KIB);
  assert_int_equal(of_memory("requested_bytes.small_pool.current"), 1000);
  assert_int_equal(of_memory("requested_bytes.large_pool.peak"), 5000 * KIB);
  assert_int_equal(of_memory("allocation.all.allocated"), before + 2);
  OK(attune_free(large, stream));
  assert_int_equal(of_memory("allocation.large_pool.current"), 0);
  assert_int_equal(of_memory("max_split_size"), -1);
  assert_true(of_memory("num_device_alloc") >= 1);
  assert_int_equal(of_memory("num_ooms"), 0);
  OK(attune_pinned_alloc(&pinned, host, 3000));
  assert_int_equal(of_pinned("allocated_bytes.current"), 4096);
  assert_int_equal(of_pinned("allocations.current"), 1);
  assert_int_equal(of_pinned("num_host_alloc"), of_pinned("host_alloc_time.count"));
  assert_true(of_pinned("host_alloc_time.min") <= of_pinned("host_alloc_time.avg"));
  assert_true(of_pinned("host_alloc_time.avg") <= of_pinned("host_alloc_time.max"));
  attune_pinned_statistics s = {0};
  OK(attune_pinned_get_statistics(host, &s));
  assert_true(s.host_alloc_least_ns > 0 && s.host_alloc_least_ns <= s.host_alloc_most_ns);
  OK(attune_pinned_free(pinned));
  OK(attune_free(small, stream));
  OK(attune_memory_configure(host, "max_split_size_mb:64"));
  assert_int_equal(of_memory("max_split_size"), 64 * KIB * KIB);
  OK(attune_memory_configure(host, "max_split_size_mb:1048576"));
  attune_stream *other = NULL;
  OK(attune_stream_create(&other, host));
  OK(attune_alloc(&small, stream, 1000));
  OK(attune_record_use(small, other));
  const int64_t waits = of_memory("num_sync_all_streams");
  (void)attune_alloc(&large, NULL, 1); /* a failure, which what follows leaves alone */
  OK(attune_free(small, stream));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(attune_last_status(), ATTUNE_INVALID_ARGUMENT);
  attune_stream_destroy(other);
  assert_int_equal(of_memory("num_sync_all_streams"), waits + 1);
  seen ended = {.most = 3};
  OK(attune_memory_each_statistic(host, see, &ended));
  assert_int_equal(ended.count, 3);
}

/* ---- files ---- */

/* Exported, for its name. */
void allocate_here(void **out, size_t bytes);
__attribute__((noinline, visibility("default"))) void allocate_here(void **out, size_t bytes) {
  OK(attune_alloc(out, stream, bytes));
  __asm__ volatile("" ::: "memory"); /* no tail call: the function is to be on the stack */
}

static bool names(const json_t *frames, const char *function) {
  const json_t *frame = NULL;
  size_t i = 0;
  json_array_foreach(frames, i, frame) {
    assert_int_equal(number(frame, "line"), 0);
    if (strncmp(string(frame, "name"), function, strlen(function)) == 0)
      return strstr(string(frame, "filename"), "test_snapshot_file") != NULL;
  }
  return false;
}

TEST(a_file_has_frames) {
  void *p = NULL;
  OK(attune_memory_record_history(host, &(attune_history_options){.entries = 1000, .frames = 20}));
  allocate_here(&p, 12345);
  OK(attune_memory_snapshot_save(path, host));
  json_t *root = load(), *one = NULL, *block = NULL;
  size_t i = 0, j = 0;
  int blocks = 0, events = 0;
  json_array_foreach(json_object_get(root, "segments"), i, one) {
    json_array_foreach(json_object_get(one, "blocks"), j, block) {
      if (number(block, "address") != (json_int_t)(uintptr_t)p) continue;
      blocks++;
      assert_int_equal(number(block, "requested_size"), 12345);
      assert_string_equal(string(block, "state"), "active_allocated");
      assert_true(names(json_object_get(block, "frames"), "allocate_here+0x"));
    }
  }
  json_array_foreach(json_array_get(json_object_get(root, "device_traces"), 0), i, one) {
    if (strcmp(string(one, "action"), "alloc") != 0) continue;
    events++;
    assert_int_equal(number(one, "addr"), (json_int_t)(uintptr_t)p);
    assert_true(names(json_object_get(one, "frames"), "allocate_here+0x"));
  }
  assert_int_equal(blocks, 1);
  assert_int_equal(events, 1);
  assert_true(json_is_true(json_object_get(json_object_get(root, "allocator_settings"), "expandable_segments")));
  json_decref(root);
  OK(attune_free(p, stream));
  OK(attune_memory_record_history(host, NULL));
}

/* Long lists, large numbers, and the devices' places: the host is behind the others. */
TEST(a_long_history_is_whole) {
  attune_device *first = NULL;
  void *p = NULL;
  OK(attune_memory_record_history(host, &(attune_history_options){.entries = 10000}));
  for (size_t i = 0; i < 1500; i++) {
    OK(attune_alloc(&p, stream, i < 1000 ? 1 + 100 * i : 1 + 5000 * i));
    OK(attune_free(p, stream));
  }
  OK(attune_memory_snapshot_save(path, NULL));
  json_t *root = load(), *traces = json_object_get(root, "device_traces"), *one = NULL;
  size_t place = json_array_size(traces) - 1, i = 0, allocs = 0;
  OK(attune_device_at(&first, (int)place));
  assert_ptr_equal(first, host);
  json_array_foreach(json_array_get(traces, place), i, one) {
    if (strcmp(string(one, "action"), "alloc") != 0) continue;
    const size_t bytes = allocs < 1000 ? 1 + 100 * allocs : 1 + 5000 * allocs;
    assert_int_equal(number(one, "size"), (bytes + 511) / 512 * 512);
    allocs++;
  }
  assert_int_equal(allocs, 1500);
  json_array_foreach(json_object_get(root, "segments"), i, one) assert_int_equal(number(one, "device"), place);
  json_decref(root);
  OK(attune_memory_record_history(host, NULL));
}

TEST(what_is_skipped_is_not_recorded) {
  attune_history_options options = {0}; /* as many entries as are usual */
  options.skip = ATTUNE_HISTORY_EVERY & ~(unsigned)ATTUNE_HISTORY_FREE_REQUESTED;
  void *p = NULL;
  OK(attune_memory_record_history(host, &options));
  for (int i = 0; i < 3; i++) {
    OK(attune_alloc(&p, stream, 1000));
    OK(attune_free(p, stream));
  }
  OK(attune_memory_snapshot_save(path, host));
  json_t *root = load(), *trace = json_array_get(json_object_get(root, "device_traces"), 0);
  assert_int_equal(json_array_size(trace), 3);
  for (size_t i = 0; i < 3; i++) assert_string_equal(string(json_array_get(trace, i), "action"), "free_requested");
  json_decref(root);
  OK(attune_memory_record_history(host, NULL));
  options.frames = 65;
  assert_int_equal(attune_memory_record_history(host, &options), ATTUNE_INVALID_ARGUMENT);
  options = (attune_history_options){.entries = 1, .skip = 512};
  assert_int_equal(attune_memory_record_history(host, &options), ATTUNE_INVALID_ARGUMENT);
  options = (attune_history_options){.entries = SIZE_MAX / 16, .frames = 64};
  assert_int_equal(attune_memory_record_history(host, &options), ATTUNE_OUT_OF_MEMORY);
}

TEST(pinned_memory_has_a_history) {
  static const char *const expected[] = {"segment_alloc",  "alloc",        "free_requested",
                                         "free_completed", "alloc",        "free_requested",
                                         "free_completed", "segment_free", "snapshot"};
  void *p = NULL, *kept = NULL;
  OK(attune_pinned_empty_cache(host));
  OK(attune_pinned_alloc(&kept, host, 5000));
  OK(attune_pinned_record_history(host, &(attune_history_options){.entries = 100, .frames = 4}));
  attune_memory_annotate("staging");
  for (int i = 0; i < 2; i++) {
    OK(attune_pinned_alloc(&p, host, 100 * KIB));
    OK(attune_pinned_free(p));
  }
  attune_memory_annotate(NULL);
  OK(attune_pinned_empty_cache(host));
  OK(attune_pinned_snapshot_save(path, host));
  json_t *root = load(), *trace = json_array_get(json_object_get(root, "device_traces"), 0);
  const json_t *segments = json_object_get(root, "segments"), *segment = json_array_get(segments, 0);
  assert_int_equal(json_array_size(trace), sizeof expected / sizeof *expected);
  for (size_t i = 0; i < json_array_size(trace); i++)
    assert_string_equal(string(json_array_get(trace, i), "action"), expected[i]);
  assert_string_equal(string(json_array_get(trace, 1), "user_metadata"), "staging");
  assert_true(json_array_size(json_object_get(json_array_get(trace, 1), "frames")) > 0);
  assert_int_equal(json_array_size(segments), 1);
  assert_int_equal(number(segment, "total_size"), 8192);
  assert_string_equal(string(segment, "segment_type"), "pinned");
  assert_int_equal(number(json_array_get(json_object_get(segment, "blocks"), 0), "requested_size"), 5000);
  json_decref(root);
  OK(attune_pinned_record_history(host, NULL));
  OK(attune_pinned_free(kept));
}

TEST(files_that_cannot_be_written) {
  assert_int_equal(attune_memory_snapshot_save(NULL, host), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_snapshot_save("", host), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_memory_snapshot_save("/tmp/attune_no_such_folder/file", host), ATTUNE_NOT_FOUND,
               "attune_no_such_folder");
  assert_int_equal(attune_memory_snapshot_save("/dev/full", host), ATTUNE_IO_ERROR);
  assert_int_equal(access("/dev/full", F_OK), 0);
  assert_int_equal(attune_memory_each_statistic(host, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_each_statistic(NULL, see, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_each_statistic(host, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_record_history(NULL, NULL), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  if (system("python3 -c 'import pickle'") != 0) return skip_all("no python3, which reads the files");
  return RUN_TESTS(set_up, tear_down);
}
