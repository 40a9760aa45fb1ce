/* SPDX-License-Identifier: Apache-2.0
 * test_jit_launch.c: what a launch tells CUDA, what is set before and how often, and what is refused in which words, on
 * a made-up device of capability 9.0. */
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include "tests/src/cuda/jit_runtime.h"

static at_cuda_device device_state, other_state;
static attune_device device = {.name = "cuda:0", .state = &device_state, .properties = {.capability_major = 9}};
static attune_device other = {.name = "cuda:1", .state = &other_state, .properties = {.capability_major = 9}};
static attune_stream *stream = &streams[0];
static char root[64];

/* Each test names its own file, which makes its kernel another one. */
static at_jit_kernel *kernel_of(const char *file) {
  const at_kernel_source source = {file, "extern \"C\" __global__ void k(int *x) { *x = 1; }", "k", NULL, false, false};
  at_jit_kernel *kernel = NULL;
  OK(at_jit_get(&kernel, &device, &source));
  return kernel;
}

/* Check and launch refuse alike, and nothing is launched. */
static void refuses(at_jit_kernel *kernel, const at_jit_config *config, attune_status status, const char *message) {
  const int argument = 3;
  const uint64_t before = runtime.now;
  FAILS(at_jit_check(kernel, config), status);
  assert_string_equal(attune_last_message(), message);
  FAILS(at_jit_launch(kernel, config, &argument, stream), status);
  assert_string_equal(attune_last_message(), message);
  assert_int_equal(runtime.now, before);
}

static void assert_dims(dim3 d, unsigned x, unsigned y, unsigned z) {
  assert_int_equal(d.x, x);
  assert_int_equal(d.y, y);
  assert_int_equal(d.z, z);
}

TEST(all_sizes_reach_cuda) {
  at_jit_kernel *kernel = kernel_of("sizes.cu");
  const int argument = 42, sets = runtime.sets;
  const at_jit_config config = {.grid = {5, 6, 7}, .block = {8, 2, 3}, .shared_bytes = 1000};
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_dims(runtime.config.gridDim, 5, 6, 7);
  assert_dims(runtime.config.blockDim, 8, 2, 3);
  assert_int_equal(runtime.config.dynamicSmemBytes, 1000);
  assert_int_equal(runtime.config.numAttrs, 0);
  assert_ptr_equal(runtime.config.stream, stream->native);
  assert_int_equal(runtime.argument, 42);
  OK(at_jit_launch(kernel, &AT_JIT_ROW(9, 64), &argument, stream));
  assert_dims(runtime.config.gridDim, 9, 1, 1);
  assert_dims(runtime.config.blockDim, 64, 1, 1);
  assert_int_equal(runtime.config.dynamicSmemBytes, 0);
  assert_int_equal(runtime.sets, sets);
  at_jit_release(kernel);
}

TEST(large_shared_memory_is_allowed_once) {
  at_jit_kernel *kernel = kernel_of("shared.cu"), *launched_only = kernel_of("shared-launched.cu");
  const int argument = 1, sets = runtime.sets;
  at_jit_config config = AT_JIT_ROW(1, 32);
  config.shared_bytes = SHARED_DEFAULT;
  OK(at_jit_check(kernel, &config));
  assert_int_equal(runtime.sets, sets); /* nothing to allow */
  config.shared_bytes = 100 * 1024;
  OK(at_jit_check(kernel, &config));
  assert_int_equal(runtime.sets, sets + 1);
  OK(at_jit_launch(kernel, &config, &argument, stream));
  config.shared_bytes = SHARED_OPTIN; /* more than before, all that there is */
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_int_equal(runtime.config.dynamicSmemBytes, SHARED_OPTIN);
  assert_int_equal(runtime.sets, sets + 1);
  OK(at_jit_launch(launched_only, &config, &argument, stream));
  OK(at_jit_launch(launched_only, &config, &argument, stream));
  assert_int_equal(runtime.sets, sets + 2);
  at_jit_release(kernel);
  at_jit_release(launched_only);
}

TEST(too_much_shared_memory) {
  runtime.static_shared = 2048;
  at_jit_kernel *kernel = kernel_of("much.cu");
  runtime.static_shared = 0;
  at_jit_config config = AT_JIT_ROW(1, 32);
  config.shared_bytes = 300 * 1024;
  refuses(kernel, &config, ATTUNE_UNSUPPORTED,
          "k of much.cu needs 307200 bytes (300.0 KiB) of dynamic and 2048 of static shared memory; cuda:0 allows "
          "232448 (227.0 KiB) in total");
  config.shared_bytes = SHARED_OPTIN - 2047;
  FAILS(at_jit_check(kernel, &config), ATTUNE_UNSUPPORTED);
  config.shared_bytes = SHARED_OPTIN - 2048;
  runtime.static_shared = 2048;
  OK(at_jit_check(kernel, &config));
  runtime.static_shared = 0;
  config.shared_bytes = UINT32_MAX; /* no sum overflows */
  FAILS(at_jit_check(kernel, &config), ATTUNE_UNSUPPORTED);
  at_jit_release(kernel);
}

TEST(grids_and_blocks_within_the_device) {
  runtime.threads = 640; /* as a kernel with many registers has it */
  at_jit_kernel *kernel = kernel_of("within.cu");
  runtime.threads = 1024;
  at_jit_config config = {.grid = {2147483647, 65535, 65535}, .block = {10, 1, 64}};
  OK(at_jit_check(kernel, &config));
  config.grid[2] = 65536;
  refuses(kernel, &config, ATTUNE_UNSUPPORTED,
          "k of within.cu needs a grid of 2147483647x65535x65536 blocks; cuda:0 allows 2147483647x65535x65535");
  config = (at_jit_config){.grid = {1}, .block = {10, 1, 65}};
  refuses(
      kernel, &config, ATTUNE_UNSUPPORTED,
      "k of within.cu needs 10x1x65 threads in a block; cuda:0 allows 1024x1024x64, and 640 in total for this kernel");
  config = (at_jit_config){.grid = {1}, .block = {641}};
  FAILS(at_jit_check(kernel, &config), ATTUNE_UNSUPPORTED);
  config = (at_jit_config){.grid = {1}, .block = {1u << 16, 1u << 16, 1}}; /* no product overflows */
  FAILS(at_jit_check(kernel, &config), ATTUNE_UNSUPPORTED);
  config = (at_jit_config){.grid = {0}, .block = {32}};
  refuses(kernel, &config, ATTUNE_INVALID_ARGUMENT,
          "k of within.cu has 0 blocks of 32 threads; should be at least one of each");
  config = (at_jit_config){.grid = {4}, .block = {0, 2}};
  FAILS(at_jit_check(kernel, &config), ATTUNE_INVALID_ARGUMENT);
  at_jit_release(kernel);
}

TEST(clusters) {
  at_jit_kernel *kernel = kernel_of("clusters.cu");
  const int argument = 1, sets = runtime.sets;
  at_jit_config config = {.grid = {4, 6, 2}, .block = {32}, .cluster = {2, 3}};
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_int_equal(runtime.config.numAttrs, 1);
  assert_int_equal(runtime.attributes[0].id, cudaLaunchAttributeClusterDimension);
  assert_int_equal(runtime.attributes[0].val.clusterDim.x, 2);
  assert_int_equal(runtime.attributes[0].val.clusterDim.y, 3);
  assert_int_equal(runtime.attributes[0].val.clusterDim.z, 1);
  assert_int_equal(runtime.sets, sets);
  config.grid[1] = 7;
  refuses(kernel, &config, ATTUNE_INVALID_ARGUMENT,
          "k of clusters.cu has a grid of 4x7x2 blocks in clusters of 2x3x1; should be whole clusters");
  config = (at_jit_config){.grid = {32}, .block = {32}, .cluster = {16}};
  OK(at_jit_launch(kernel, &config, &argument, stream)); /* more than every device takes: it is asked for */
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_int_equal(runtime.sets, sets + 1);
  config.cluster[0] = 32;
  refuses(kernel, &config, ATTUNE_UNSUPPORTED,
          "k of clusters.cu needs clusters of 32x1x1 blocks; cuda:0 allows 16 blocks with 32 threads and 0 bytes of "
          "dynamic shared memory each");
  config = (at_jit_config){.grid = {16}, .block = {64}, .cluster = {16}, .shared_bytes = 200 * 1024};
  FAILS(at_jit_check(kernel, &config), ATTUNE_UNSUPPORTED); /* large blocks, smaller clusters */
  assert_non_null(strstr(attune_last_message(), "allows 8 blocks with 64 threads and 204800 bytes"));
  config.cluster[0] = 0x80000000u, config.cluster[1] = 2; /* no product overflows */
  FAILS(at_jit_check(kernel, &config), ATTUNE_INVALID_ARGUMENT);
  at_jit_release(kernel);
}

TEST(older_devices) {
  runtime.clusters = 0, runtime.major = 8;
  at_jit_kernel *kernel = kernel_of("older.cu");
  runtime.clusters = 1, runtime.major = 9;
  const int argument = 1;
  at_jit_config config = {.grid = {4}, .block = {32}, .cluster = {2}};
  refuses(kernel, &config, ATTUNE_UNSUPPORTED,
          "k of older.cu needs clusters of 2x1x1 blocks; cuda:0 has none (compute capability 9.0 has)");
  config = (at_jit_config){.grid = {4}, .block = {32}, .dependent = true};
  OK(at_jit_launch(kernel, &config, &argument, stream)); /* the order of the stream serves as well */
  assert_int_equal(runtime.config.numAttrs, 0);
  at_jit_release(kernel);
}

TEST(dependent_launches) {
  at_jit_kernel *kernel = kernel_of("dependent.cu");
  const int argument = 1;
  at_jit_config config = {.grid = {4}, .block = {32}, .dependent = true};
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_int_equal(runtime.config.numAttrs, 1);
  assert_int_equal(runtime.attributes[0].id, cudaLaunchAttributeProgrammaticStreamSerialization);
  assert_int_equal(runtime.attributes[0].val.programmaticStreamSerializationAllowed, 1);
  config.cluster[1] = 1;
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_int_equal(runtime.config.numAttrs, 2);
  assert_int_equal(runtime.attributes[0].id, cudaLaunchAttributeClusterDimension);
  assert_int_equal(runtime.attributes[1].id, cudaLaunchAttributeProgrammaticStreamSerialization);
  at_jit_release(kernel);
}

TEST(what_cuda_refuses_names_the_kernel) {
  at_jit_kernel *kernel = kernel_of("refused.cu");
  const int argument = 1;
  const at_jit_config config = {.grid = {4, 5}, .block = {32, 2, 2}, .shared_bytes = 10};
  runtime.launch_error = cudaErrorLaunchOutOfResources;
  FAILS(at_jit_launch(kernel, &config, &argument, stream), ATTUNE_DEVICE_ERROR);
  assert_non_null(strstr(attune_last_message(),
                         "launching k of refused.cu, 4x5x1 blocks of 32x2x2 threads and 10 bytes, on cuda:0: "
                         "cudaErrorLaunchOutOfResources"));
  (void)at_fail(ATTUNE_NOT_FOUND, "mine");
  OK(at_jit_launch(kernel, &config, &argument, stream));
  assert_string_equal(attune_last_message(), "mine");
  attune_stream of_other = {.device = &other, .native = &runtime.streams[1]};
  FAILS(at_jit_launch(kernel, &config, &argument, &of_other), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(),
                      "k of refused.cu is loaded on cuda:0; the stream should be of that device, not of cuda:1");
  runtime.streams[0].hidden = true; /* beside a capture that forbids the stream: it is asked, and nothing is launched */
  const uint64_t before = runtime.now;
  FAILS(at_jit_launch(kernel, &config, &argument, stream), ATTUNE_CAPTURING);
  assert_int_equal(runtime.now, before);
  runtime.streams[0].hidden = false;
  at_jit_release(kernel);
}

/* Many threads ask for the right that one has to set. */
#define WORKERS 8
static at_jit_kernel *shared_kernel;
static pthread_barrier_t start;

static void *launch_large(void *number) {
  const int argument = 1;
  at_jit_config config = AT_JIT_ROW(1, 32);
  config.shared_bytes = 64 * 1024;
  config.cluster[0] = 1;
  pthread_barrier_wait(&start);
  if ((uintptr_t)number % 2) return at_jit_check(shared_kernel, &config) == ATTUNE_OK ? number : NULL;
  return at_jit_launch(shared_kernel, &config, &argument, &streams[1 + (uintptr_t)number % 3]) == ATTUNE_OK ? number
                                                                                                            : NULL;
}

TEST(threads_set_it_once) {
  pthread_t threads[WORKERS];
  const int sets = runtime.sets;
  shared_kernel = kernel_of("threads.cu");
  assert_int_equal(pthread_barrier_init(&start, NULL, WORKERS), 0);
  for (uintptr_t i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_large, (void *)(i + 1)), 0);
  for (uintptr_t i = 0; i < WORKERS; i++) {
    void *result = NULL;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_ptr_equal(result, (void *)(i + 1));
  }
  pthread_barrier_destroy(&start);
  assert_int_equal(runtime.sets, sets + 1);
  at_jit_release(shared_kernel);
}

int main(void) {
  snprintf(root, sizeof root, "/tmp/attune-jit-XXXXXX");
  if (!mkdtemp(root) || setenv("ATTUNE_CACHE_DIR", root, 1) != 0) return 1;
  fake_open_streams(&device);
  const int failures = RUN_TESTS(NULL, NULL);
  fake_close_streams();
  return folder_remove(root) == 0 ? failures : 1;
}
