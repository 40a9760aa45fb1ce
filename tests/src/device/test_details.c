/* SPDX-License-Identifier: Apache-2.0
 * test_details.c: devices before and after their start, in detail, and settings; default generators. On the host and,
 * where there is one, on a GPU. */
#include "tests/support/check.h"

#include <attune/attune.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef AT_WITH_CUDA
#include "src/cuda/library/visible_devices.h"
#endif

static attune_device *host, *best;

/* The first test: nothing has looked for devices yet. */
TEST(questions_start_nothing) {
  int count = -1;
  assert_int_equal(attune_is_initialized(), 0);
  const attune_status status = attune_cuda_count(&count);
  assert_true(status == ATTUNE_OK || status == ATTUNE_UNSUPPORTED);
  FAILS(attune_cuda_count(NULL), ATTUNE_INVALID_ARGUMENT);
#ifdef AT_WITH_CUDA
  assert_int_equal(attune_built_with_cuda(), 1);
#else
  assert_int_equal(attune_built_with_cuda(), 0);
  assert_int_equal(count, 0);
#endif
  assert_int_equal(attune_is_initialized(), 0);
  OK(attune_device_get(&host, "host"));
  OK(attune_device_get(&best, NULL));
  assert_int_equal(attune_is_initialized(), 1);
  if (status == ATTUNE_OK) assert_int_equal(count, attune_device_count() - 1);
}

TEST(the_reason_is_told) {
  attune_device *gpu = NULL;
  if (best != host) return;
  FAILS(attune_device_get(&gpu, "cuda"), ATTUNE_NOT_FOUND);
#ifdef AT_WITH_CUDA
  assert_true(strstr(attune_last_message(), "there is no CUDA driver") ||
              strstr(attune_last_message(), "the CUDA driver reports no GPU"));
#else
  assert_non_null(strstr(attune_last_message(), "this attune was built without CUDA"));
#endif
}

TEST(devices_start) {
  FAILS(attune_device_initialize(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_device_is_initialized(NULL), 0);
  assert_int_equal(attune_device_is_initialized(host), 1);
  OK(attune_device_initialize(host));
  OK(attune_device_initialize(best));
  OK(attune_device_initialize(best));
  assert_int_equal(attune_device_is_initialized(best), 1);
}

TEST(details_of_the_host) {
  attune_device_details d = {0};
  memset(&d, 1, sizeof d);
  d.size = sizeof d;
  OK(attune_device_get_details(host, &d));
  assert_int_equal(d.warp_size, ATTUNE_NOT_KNOWN);
  assert_int_equal(d.numa_node, ATTUNE_NOT_KNOWN);
  assert_int_equal(d.memory_pools, ATTUNE_NOT_KNOWN);
  assert_string_equal(d.uuid, "");
  assert_string_equal(d.pci, "");
  FAILS(attune_device_get_details(NULL, &d), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_get_details(host, NULL), ATTUNE_INVALID_ARGUMENT);
}

TEST(details_of_a_gpu) {
  attune_device_details d = {0};
  attune_schedule schedule;
  size_t stack = 0, changed = 0;
  int warp = 0, pools = -1;
  if (best == host) skip();
  OK(attune_device_get_details(best, &d));
  assert_int_equal(d.warp_size, 32);
  assert_int_equal(d.threads_per_block, 1024);
  assert_in_range(d.shared_per_block_optin, d.shared_per_block, 1 << 20);
  assert_true(d.registers_per_processor >= 65536);
  OK(attune_device_get_attribute(best, 115, &pools)); /* cudaDevAttrMemoryPoolsSupported */
  assert_int_equal(d.memory_pools, pools);
  assert_int_equal(strlen(d.uuid), 40);
  assert_non_null(strchr(d.pci, '.'));
  OK(attune_device_get_attribute(best, 10, &warp)); /* cudaDevAttrWarpSize */
  assert_int_equal(warp, 32);
  FAILS(attune_device_get_attribute(best, 1000000, &warp), ATTUNE_INVALID_ARGUMENT);
  OK(attune_device_get_limit(best, ATTUNE_LIMIT_STACK, &stack));
  OK(attune_device_set_limit(best, ATTUNE_LIMIT_STACK, 2 * stack));
  OK(attune_device_get_limit(best, ATTUNE_LIMIT_STACK, &changed));
  assert_true(changed >= 2 * stack);
  OK(attune_device_set_limit(best, ATTUNE_LIMIT_STACK, stack));
  /* It is in use by now. */
  OK(attune_device_get_schedule(best, &schedule));
  const attune_status set = attune_device_set_schedule(best, ATTUNE_SCHEDULE_BLOCK);
  assert_true(set == ATTUNE_OK || set == ATTUNE_UNSUPPORTED);
  if (set == ATTUNE_UNSUPPORTED) assert_non_null(strstr(attune_last_message(), "before its first use"));
  OK(attune_device_synchronize(best));
}

/* In a process of its own: before the first use; 0: as it should be. */
static int sets_a_schedule(void) {
  attune_schedule schedule = ATTUNE_SCHEDULE_AUTO;
  attune_device *device = NULL;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return 2;
  if (attune_device_set_schedule(device, ATTUNE_SCHEDULE_BLOCK) != ATTUNE_OK) return 3;
  if (attune_device_initialize(device) != ATTUNE_OK) return 4;
  if (attune_device_get_schedule(device, &schedule) != ATTUNE_OK) return 5;
  return schedule == ATTUNE_SCHEDULE_BLOCK ? 0 : 6;
}

static const char *program;

TEST(a_schedule_before_the_first_use) {
  char command[512];
  if (best == host) skip();
  snprintf(command, sizeof command, "%s schedule", program);
  const int ended = system(command);
  if (ended != 0) fail_msg("it ended with %d", WEXITSTATUS(ended));
}

TEST(settings_of_the_host) {
  size_t bytes = 0;
  int value = 0, least = 7, greatest = 7;
  attune_schedule schedule;
  FAILS(attune_device_get_attribute(host, 10, &value), ATTUNE_UNSUPPORTED);
  FAILS(attune_device_get_attribute(NULL, 10, &value), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_get_attribute(host, 10, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_get_limit(host, ATTUNE_LIMIT_STACK, &bytes), ATTUNE_UNSUPPORTED);
  FAILS(attune_device_get_limit(host, (attune_limit)9, &bytes), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_get_limit(host, ATTUNE_LIMIT_STACK, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_set_limit(NULL, ATTUNE_LIMIT_STACK, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_set_limit(host, ATTUNE_LIMIT_HEAP, 1), ATTUNE_UNSUPPORTED);
  FAILS(attune_device_get_schedule(host, &schedule), ATTUNE_UNSUPPORTED);
  FAILS(attune_device_get_schedule(host, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_set_schedule(host, (attune_schedule)3), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_set_schedule(host, ATTUNE_SCHEDULE_SPIN), ATTUNE_UNSUPPORTED);
  OK(attune_device_priority_range(host, &least, &greatest));
  assert_int_equal(least, 0);
  assert_int_equal(greatest, 0);
  OK(attune_device_priority_range(best, NULL, &greatest));
  assert_true(best == host || greatest < 0);
  FAILS(attune_device_priority_range(NULL, &least, &greatest), ATTUNE_INVALID_ARGUMENT);
}

TEST(architectures) {
  int known[64], one[1] = {0};
  assert_string_equal(attune_architecture_name(7, 0), "Volta");
  assert_string_equal(attune_architecture_name(7, 5), "Turing");
  assert_string_equal(attune_architecture_name(8, 0), "Ampere");
  assert_string_equal(attune_architecture_name(8, 6), "Ampere");
  assert_string_equal(attune_architecture_name(8, 9), "Ada Lovelace");
  assert_string_equal(attune_architecture_name(9, 0), "Hopper");
  assert_string_equal(attune_architecture_name(10, 0), "Blackwell");
  assert_string_equal(attune_architecture_name(12, 0), "Blackwell");
  assert_string_equal(attune_architecture_name(4, 0), "unknown");
  assert_string_equal(attune_architecture_name(99, 0), "unknown");
  const int count = attune_cuda_architectures(known, 64);
  assert_int_equal(attune_cuda_architectures(NULL, 0), count);
  assert_int_equal(attune_cuda_architectures(one, 1), count);
  if (!attune_built_with_cuda()) assert_int_equal(count, 0);
  assert_true(best == host || count > 0); /* a GPU has come with a toolkit that compiles for it */
  for (int i = 1; i < count; i++) assert_true(known[i] > known[i - 1]);
  if (count) assert_int_equal(one[0], known[0]);
}

#ifdef AT_WITH_CUDA
static bool uuid_of(int index, char *out, size_t size) {
  static const char *const uuids[] = {"GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333"};
  return at_copy_text(out, size, uuids[index]);
}

TEST(visible_devices) {
  static const struct {
    const char *text;
    int count;
  } cases[] = {{NULL, 3},
               {"", 0},
               {"0", 1},
               {"0,1", 2},
               {"2, 0 ,1", 3},
               {"1,1", 0},
               {"0,3,1", 1},
               {"-1,0", 0},
               {"0,-1,1", 1},
               {"0,x,1", 1},
               {"GPU-b", 1},
               {"GPU-a", 0},
               {"GPU-aaaa2,GPU-b", 2},
               {"GPU-b,GPU-bbbb", 0},
               {"GPU-c", 0},
               {"MIG-1", -1},
               {"0,,1", 1},
               {"3", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const int count = at_visible_of(cases[i].text, 3, uuid_of);
    if (count != cases[i].count) fail_msg("\"%s\": %d; should be %d", cases[i].text, count, cases[i].count);
  }
}
#endif

/* The states of all devices' generators, taken and put back: the same numbers come again. */
TEST(states_of_all_devices) {
  for (int i = 0; i < attune_device_count(); i++) {
    attune_device *device = NULL;
    attune_generator *generator = NULL;
    unsigned char before[ATTUNE_GENERATOR_STATE_BYTES], after[ATTUNE_GENERATOR_STATE_BYTES];
    OK(attune_device_at(&device, i));
    OK(attune_device_generator(&generator, device));
    OK(attune_generator_get_state(generator, before, sizeof before));
    OK(attune_generator_jump(generator, 8));
    OK(attune_generator_get_state(generator, after, sizeof after));
    assert_memory_not_equal(before, after, sizeof before);
    OK(attune_generator_set_state(generator, before, sizeof before));
    OK(attune_generator_get_state(generator, after, sizeof after));
    assert_memory_equal(before, after, sizeof before);
  }
}

TEST(default_generators) {
  attune_generator *one = NULL, *two = NULL, *own = NULL;
  uint64_t seed = 0, seeds[2] = {0};
  OK(attune_device_generator(&one, host));
  OK(attune_device_generator(&two, host));
  assert_ptr_equal(one, two);
  OK(attune_generator_get_seed(one, &seed));
  assert_true(seed == UINT64_C(67280421310721));
  OK(attune_seed_all(12345));
  OK(attune_generator_get_seed(one, &seed));
  assert_int_equal(seed, 12345);
  OK(attune_device_generator(&two, best));
  OK(attune_generator_get_seed(two, &seed));
  assert_int_equal(seed, 12345);
  FAILS(attune_device_generator(NULL, host), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_generator(&own, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(own);
  OK(attune_generator_create(&own, 1));
  OK(attune_generator_jump(own, 8));
  for (int i = 0; i < 2; i++) {
    uint64_t offset = 9;
    OK(attune_generator_seed(own, &seeds[i]));
    OK(attune_generator_get_seed(own, &seed));
    OK(attune_generator_get_offset(own, &offset));
    assert_true(seed == seeds[i] && seed < UINT64_C(1) << 53);
    assert_int_equal(offset, 0);
  }
  assert_true(seeds[0] != seeds[1]);
  OK(attune_generator_seed(own, NULL));
  FAILS(attune_generator_seed(NULL, &seed), ATTUNE_INVALID_ARGUMENT);
  attune_generator_destroy(own);
}

static void wait_a_little(void *user) {
  usleep(2000);
  *(volatile int *)user = 1;
}

/* With it a call returns when its work is done; a stream's function is no launch. */
TEST(launches_block) {
  attune_stream *stream = NULL;
  char memory[16];
  volatile int done = 0;
  OK(attune_stream_create(&stream, host));
  assert_int_equal(attune_get_launch_blocking(), 0);
  for (int on = 0; on < 2; on++) {
    OK(attune_set_launch_blocking(on));
    assert_int_equal(attune_get_launch_blocking(), on);
    done = 0;
    OK(attune_stream_call(stream, wait_a_little, (void *)(uintptr_t)&done));
    OK(attune_fill(stream, memory, on, sizeof memory));
    if (on) assert_int_equal(done, 1);
    if (on) OK(attune_stream_query(stream));
    OK(attune_stream_synchronize(stream));
  }
  attune_graph *graph = NULL; /* in a capture nothing waits */
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_fill(stream, memory, 3, sizeof memory));
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_query(stream));
  assert_int_equal(memory[5], 3);
  OK(attune_set_launch_blocking(0));
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

int main(int argc, char **argv) {
  program = argv[0];
  if (argc > 1 && strcmp(argv[1], "schedule") == 0) return sets_a_schedule();
  return RUN_TESTS(NULL, NULL);
}
