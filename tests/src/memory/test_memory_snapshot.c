/* SPDX-License-Identifier: Apache-2.0
 * test_memory_snapshot.c: the snapshot is JSON of the documented form, its sizes add up, and the history has what
 * happened in order. */
#include "tests/support/check.h"

#include <attune/graph.h>
#include <attune/memory.h>
#include <attune/snapshot.h>

#include <jansson.h>

#include "tests/support/host_stream.h"

#define MIB ((size_t)1 << 20)

static json_t *snapshot(void) {
  char *text = NULL;
  json_error_t error;
  OK(attune_memory_snapshot(&text, host));
  json_t *root = json_loads(text, 0, &error);
  if (!root) fail_msg("line %d: %s", error.line, error.text);
  free(text);
  return root;
}

static json_int_t number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) fail_msg("%s is no whole number", key);
  return json_integer_value(value);
}

static const char *string(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

TEST(sizes_add_up) {
  void *small = NULL, *large = NULL, *freed = NULL;
  attune_memory_statistics s = {0};
  json_int_t total = 0, allocated = 0, requested = 0, live = 0;
  OK(attune_alloc(&small, stream, 1000));
  OK(attune_alloc(&freed, stream, 3000));
  OK(attune_alloc(&large, stream, 5 * MIB));
  OK(attune_free(freed, stream));
  json_t *root = snapshot(), *segment = NULL, *block = NULL;
  OK(attune_memory_get_statistics(host, &s));
  size_t i = 0, j = 0;
  json_array_foreach(json_object_get(root, "segments"), i, segment) {
    json_int_t inside = 0, at = number(segment, "address");
    json_array_foreach(json_object_get(segment, "blocks"), j, block) {
      assert_int_equal(number(block, "address"), at);
      at += number(block, "size");
      inside += number(block, "size");
      if (strcmp(string(block, "state"), "active_allocated") != 0) continue;
      live++;
      requested += number(block, "requested_size");
      assert_true(number(block, "address") == (json_int_t)(uintptr_t)small ||
                  number(block, "address") == (json_int_t)(uintptr_t)large);
    }
    assert_int_equal(inside, number(segment, "total_size"));
    assert_non_null(string(segment, "segment_type"));
    assert_int_equal(json_array_size(json_object_get(segment, "segment_pool_id")), 2);
    total += inside;
    allocated += number(segment, "allocated_size");
  }
  assert_int_equal(live, 2);
  assert_int_equal(requested, 1000 + 5 * MIB);
  assert_int_equal(total, s.reserved_bytes[0].current);
  assert_int_equal(allocated, s.allocated_bytes[0].current);
  assert_true(json_is_object(json_object_get(root, "allocator_settings")));
  json_decref(root);
  OK(attune_free(small, stream));
  OK(attune_free(large, stream));
}

static void has_numbers(const json_t *object, const char *const *keys) {
  for (; *keys; keys++) (void)number(object, *keys);
}

/* Fields that torch/cuda/_memory_viz.py and MemoryViz.js read, with their types. */
TEST(the_visualiser_finds_its_keys) {
  static const char *const of_segments[] = {"device",      "address",        "total_size", "allocated_size",
                                            "active_size", "requested_size", "stream",     NULL};
  static const char *const of_blocks[] = {"address", "size", "requested_size", NULL};
  static const char *const of_events[] = {"size", "stream", "time_us", NULL};
  void *p = NULL, *q = NULL;
  OK(attune_memory_record_history(host, &(attune_history_options){.entries = 100}));
  OK(attune_alloc(&p, stream, 1000));
  OK(attune_memory_set_limit(host, 1));
  assert_int_equal(attune_alloc(&q, stream, 100 * MIB), ATTUNE_OUT_OF_MEMORY);
  OK(attune_memory_set_limit(host, 0));
  json_t *root = snapshot(), *value = NULL, *block = NULL;
  size_t i = 0, j = 0;
  assert_true(json_array_size(json_object_get(root, "segments")) > 0);
  json_array_foreach(json_object_get(root, "segments"), i, value) {
    has_numbers(value, of_segments);
    assert_non_null(string(value, "segment_type"));
    assert_true(json_is_boolean(json_object_get(value, "is_expandable")));
    assert_true(json_is_array(json_object_get(value, "frames")));
    const json_t *id = json_object_get(value, "segment_pool_id");
    assert_true(json_array_size(id) == 2 && json_is_integer(json_array_get(id, 0)));
    json_array_foreach(json_object_get(value, "blocks"), j, block) {
      has_numbers(block, of_blocks);
      assert_non_null(strstr("active_allocated active_pending_free inactive", string(block, "state")));
      assert_true(json_is_array(json_object_get(block, "frames")));
    }
  }
  assert_true(json_array_size(json_array_get(json_object_get(root, "device_traces"), 0)) >= 3);
  json_array_foreach(json_array_get(json_object_get(root, "device_traces"), 0), i, value) {
    has_numbers(value, of_events);
    (void)number(value, strcmp(string(value, "action"), "oom") == 0 ? "device_free" : "addr");
    assert_true(json_is_array(json_object_get(value, "frames")));
  }
  assert_true(json_is_array(json_object_get(root, "external_annotations")));
  json_decref(root);
  OK(attune_free(p, stream));
  OK(attune_memory_record_history(host, NULL));
}

/* The visualiser adds sizes up from a segment's address: a stretch without memory must not lie in one. */
TEST(a_gap_ends_a_segment) {
  void *p[3];
  OK(attune_memory_empty_cache(host));
  for (int i = 0; i < 3; i++) OK(attune_alloc(&p[i], stream, 60 * MIB));
  OK(attune_free(p[1], stream));
  OK(attune_memory_empty_cache(host));
  json_t *root = snapshot(), *segments = json_object_get(root, "segments");
  assert_int_equal(json_array_size(segments), 2);
  for (size_t i = 0; i < 2; i++) {
    const json_t *segment = json_array_get(segments, i), *block = NULL;
    json_int_t at = number(segment, "address");
    assert_int_equal(at, (json_int_t)(uintptr_t)p[2 * i]);
    assert_int_equal(number(segment, "total_size"), 60 * MIB);
    size_t j = 0;
    json_array_foreach(json_object_get(segment, "blocks"), j, block) {
      assert_int_equal(number(block, "address"), at);
      at += number(block, "size");
    }
    assert_int_equal(at, number(segment, "address") + number(segment, "total_size"));
  }
  json_decref(root);
  OK(attune_free(p[0], stream));
  OK(attune_free(p[2], stream));
  OK(attune_memory_empty_cache(host));
  root = snapshot();
  assert_int_equal(json_array_size(json_object_get(root, "segments")), 0);
  json_decref(root);
}

/* Freed, and in use by another stream: drawn with the size that was asked. */
TEST(pending_memory_keeps_its_size) {
  attune_graph *graph = NULL;
  void *p = NULL;
  OK(attune_alloc(&p, stream, 1000));
  attune_stream *other = NULL;
  OK(attune_stream_create(&other, host));
  OK(attune_record_use(p, other));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, other, NULL)); /* its use ends with the capture at the earliest */
  OK(attune_free(p, stream));
  json_t *root = snapshot(), *segment = NULL, *block = NULL;
  size_t i = 0, j = 0, pending = 0;
  json_array_foreach(json_object_get(root, "segments"), i, segment) {
    json_array_foreach(json_object_get(segment, "blocks"), j, block) {
      if (strcmp(string(block, "state"), "active_pending_free") != 0) continue;
      pending++;
      assert_int_equal(number(block, "requested_size"), 1000);
    }
  }
  assert_int_equal(pending, 1);
  json_decref(root);
  attune_graph_destroy(graph);
  attune_stream_destroy(other);
}

TEST(history_is_in_order) {
  static const char *const expected[] = {"segment_map",   "alloc", "free_requested", "free_completed",
                                         "segment_unmap", "oom",   "snapshot"};
  void *p = NULL;
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_record_history(host, &(attune_history_options){.entries = 100}));
  attune_memory_annotate("the \"first\" step\n");
  OK(attune_alloc(&p, stream, 3 * MIB));
  attune_memory_annotate(NULL);
  OK(attune_free(p, stream));
  OK(attune_memory_set_limit(host, 100 * MIB));
  assert_int_equal(attune_alloc(&p, stream, 101 * MIB), ATTUNE_OUT_OF_MEMORY);
  OK(attune_memory_set_limit(host, 0));
  OK(attune_memory_empty_cache(host));
  json_t *root = snapshot(), *trace = json_array_get(json_object_get(root, "device_traces"), 0);
  size_t seen = 0;
  for (size_t i = 0; i < json_array_size(trace); i++) {
    const json_t *entry = json_array_get(trace, i);
    if (seen < sizeof expected / sizeof expected[0] && strcmp(string(entry, "action"), expected[seen]) == 0) seen++;
    assert_true(number(entry, "time_us") > 1600000000000000);
    if (strcmp(string(entry, "action"), "alloc") == 0)
      assert_string_equal(string(entry, "user_metadata"), "the \"first\" step");
    if (strcmp(string(entry, "action"), "oom") == 0) assert_true(number(entry, "device_free") > 0);
  }
  if (seen != sizeof expected / sizeof expected[0]) fail_msg("no %s in its place", expected[seen]);
  json_decref(root);
}

TEST(the_ring_keeps_the_latest) {
  OK(attune_memory_record_history(host, &(attune_history_options){.entries = 4}));
  for (int i = 0; i < 10; i++) {
    void *p = NULL;
    OK(attune_alloc(&p, stream, 1000));
    OK(attune_free(p, stream));
  }
  json_t *root = snapshot(), *trace = json_array_get(json_object_get(root, "device_traces"), 0);
  assert_int_equal(json_array_size(trace), 4);
  assert_string_equal(string(json_array_get(trace, 3), "action"), "snapshot");
  assert_string_equal(string(json_array_get(trace, 0), "action"), "alloc");
  json_decref(root);
  assert_int_equal(attune_memory_record_history(host, &(attune_history_options){.entries = SIZE_MAX}),
                   ATTUNE_OUT_OF_MEMORY);
  OK(attune_memory_record_history(host, NULL));
  root = snapshot();
  assert_int_equal(json_array_size(json_array_get(json_object_get(root, "device_traces"), 0)), 0);
  json_decref(root);
}

TEST(wrong_arguments) {
  char *text = NULL;
  assert_int_equal(attune_memory_snapshot(NULL, host), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_snapshot(&text, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_summary(&text, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_record_history(NULL, &(attune_history_options){.entries = 4}),
                   ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
