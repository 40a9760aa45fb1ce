/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_move.c: moving data on a GPU: boxes to it, from it and on it, fills with elements of any size, what
 * pointers are, memory pinned where it is, managed memory, copies that convert. Eagerly and in captures. */
#include "tests/support/cuda_graph.h"

#include <sys/mman.h>

enum { ROWS = 37, COLUMNS = 53, SLICES = 5, PITCH = 256, SLICE = PITCH * 41, ROOM = SLICE * SLICES };

static attune_stream *stream;

FIXTURE(open_stream) {
  return attune_stream_create(&stream, device) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_stream) {
  attune_stream_destroy(stream);
  return 0;
}

static void *device_memory(size_t bytes) {
  void *memory = NULL;
  OK(attune_alloc(&memory, stream, bytes));
  OK(attune_fill(stream, memory, 0, bytes));
  return memory;
}

static void wait_for_it(void) {
  OK(attune_stream_synchronize(stream));
  assert_no_stale_error();
}

/* A box, to the device in one layout, on it to another one, back in a third: each way at once and slice by slice. */
TEST(boxes_go_all_ways) {
  static unsigned char from[ROOM], to[ROOM];
  unsigned char *a = device_memory(ROOM), *b = device_memory(ROOM);
  for (size_t odd = 0; odd < 2; odd++) { /* a slice pitch that is no multiple of the pitch */
    const size_t slice = PITCH * 39 + odd * 64;
    for (int i = 0; i < ROOM; i++) from[i] = (unsigned char)(i * 7 + i / 251);
    memset(to, 0xee, ROOM);
    attune_box_copy up = {a, PITCH, SLICE, from, PITCH, slice, COLUMNS, ROWS, SLICES};
    attune_box_copy across = {b, PITCH, slice, a, PITCH, SLICE, COLUMNS, ROWS, SLICES};
    attune_box_copy down = {to, PITCH, SLICE, b, PITCH, slice, COLUMNS, ROWS, SLICES};
    OK(attune_copy_3d(stream, &up));
    OK(attune_copy_3d(stream, &across));
    OK(attune_copy_3d(stream, &down));
    wait_for_it();
    for (size_t z = 0; z < SLICES; z++)
      for (size_t y = 0; y < 41; y++)
        for (size_t x = 0; x < PITCH; x++) {
          const unsigned char is = to[z * SLICE + y * PITCH + x],
                              should = y < ROWS && x < COLUMNS ? from[z * slice + y * PITCH + x] : 0xee;
          if (is != should) fail_msg("%zu %zu %zu is %d; should be %d", z, y, x, is, should);
        }
  }
  OK(attune_copy_2d(stream, b, PITCH, a, PITCH, COLUMNS, ROWS));
  OK(attune_copy_2d(stream, to, COLUMNS, b, PITCH, COLUMNS, ROWS));
  wait_for_it();
  for (size_t y = 0; y < ROWS; y++) assert_memory_equal(to + y * COLUMNS, from + y * PITCH, COLUMNS);
  OK(attune_free(a, stream));
  OK(attune_free(b, stream));
}

static void assert_box(const unsigned char *memory, const attune_box_fill *f, size_t bytes) {
  static unsigned char expected[ROOM];
  memset(expected, 0, bytes);
  for (size_t z = 0; z < f->slices; z++)
    for (size_t y = 0; y < f->rows; y++)
      for (size_t x = 0; x < f->count; x++)
        memcpy(expected + z * f->slice_pitch + y * f->pitch + x * f->element_bytes, f->element, f->element_bytes);
  assert_memory_equal(memory, expected, bytes);
}

/* Every size of element, in rows and slices that lie close and apart; also from a graph. */
TEST(fills_of_any_element) {
  static unsigned char host[ROOM];
  unsigned char *memory = device_memory(ROOM);
  for (size_t bytes = 1; bytes <= 16; bytes *= 2)
    for (int captured = 0; captured < 2; captured++)
      for (size_t gap = 0; gap < 2; gap++) {
        attune_box_fill f = {.destination = memory, .element_bytes = bytes, .count = 7, .rows = ROWS, .slices = 3};
        f.pitch = 7 * bytes + gap * 32;
        f.slice_pitch = f.rows * f.pitch + gap * 64;
        for (size_t i = 0; i < bytes; i++) f.element[i] = (unsigned char)(i + 1);
        OK(attune_fill(stream, memory, 0, ROOM));
        if (captured) {
          attune_graph *graph = new_graph();
          OK(attune_graph_capture_begin(graph, stream, NULL));
          OK(attune_fill_3d(stream, &f));
          OK(attune_graph_capture_end(graph, stream));
          OK(attune_graph_replay(graph, stream));
          wait_for_it();
          attune_graph_destroy(graph);
        } else {
          OK(attune_fill_3d(stream, &f));
        }
        OK(attune_copy(stream, host, memory, ROOM));
        wait_for_it();
        assert_box(host, &f, ROOM);
      }
  OK(attune_free(memory, stream));
  const double value = 1.5;
  const size_t count = 10000001;
  double *line = device_memory(count * sizeof value), *copy = malloc(count * sizeof value);
  assert_non_null(copy);
  OK(attune_fill_elements(stream, line, &value, sizeof value, count - 1));
  OK(attune_copy(stream, copy, line, count * sizeof value));
  wait_for_it();
  for (size_t i = 0; i < count; i++)
    if (copy[i] != (i + 1 < count ? value : 0)) fail_msg("element %zu is %g", i, copy[i]);
  free(copy);
  OK(attune_free(line, stream));
}

/* A thread that has made no call yet: the device is not current to the driver there. */
static void *fill_there(void *memory) {
  const float value = 3;
  if (attune_fill_elements(stream, memory, &value, sizeof value, 100) != ATTUNE_OK) return (void *)1;
  return attune_stream_synchronize(stream) == ATTUNE_OK ? NULL : (void *)1;
}
TEST(fills_of_a_new_thread) {
  float *memory = device_memory(400), host[100];
  pthread_t thread;
  void *failed = NULL;
  assert_int_equal(pthread_create(&thread, NULL, fill_there, memory), 0);
  pthread_join(thread, &failed);
  assert_null(failed);
  OK(attune_copy(stream, host, memory, 400));
  wait_for_it();
  for (int i = 0; i < 100; i++) assert_true(host[i] == 3);
  OK(attune_free(memory, stream));
}

/* ---- pointers ---- */

static void assert_info(const void *pointer, attune_memory_kind kind, attune_device *on, const void *base, size_t bytes,
                        int held) {
  attune_pointer_info info = {0};
  OK(attune_pointer_get_info(&info, pointer));
  if (info.kind != kind) fail_msg("%p is of kind %d; should be %d", pointer, (int)info.kind, (int)kind);
  assert_ptr_equal(info.device, on);
  assert_ptr_equal(info.base, base);
  if (bytes) assert_int_equal(info.bytes, bytes);
  assert_int_equal(info.held, held);
}

TEST(pointers_are_told_apart) {
  char *own = device_memory(3000), *pinned = NULL, *foreign = NULL, *managed = NULL, *locked = NULL;
  char *plain = malloc(100);
  assert_non_null(plain);
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
  assert_int_equal(cudaMalloc((void **)&foreign, 5000), cudaSuccess);
  assert_int_equal(cudaMallocManaged((void **)&managed, 5000, cudaMemAttachGlobal), cudaSuccess);
  assert_int_equal(cudaHostAlloc((void **)&locked, 5000, cudaHostAllocDefault), cudaSuccess);
  OK(attune_pinned_alloc((void **)&pinned, device, 3000));
  assert_info(own + 2000, ATTUNE_KIND_DEVICE, device, own, 3072, 1);
  assert_info(pinned + 2000, ATTUNE_KIND_PINNED, device, pinned, 4096, 1);
  assert_info(foreign + 4999, ATTUNE_KIND_DEVICE, device, foreign, 0, 0);
  assert_info(managed + 17, ATTUNE_KIND_MANAGED, device, managed, 0, 0);
  assert_info(locked + 17, ATTUNE_KIND_PINNED, device, locked, 0, 0);
  assert_info(plain + 17, ATTUNE_KIND_HOST, NULL, NULL, 0, 0);
  attune_graph *graph = new_graph(); /* a question breaks no capture */
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_fill(stream, own, 1, 100));
  assert_info(foreign + 10, ATTUNE_KIND_DEVICE, device, foreign, 0, 0);
  assert_info(plain, ATTUNE_KIND_HOST, NULL, NULL, 0, 0);
  OK(attune_graph_capture_end(graph, stream));
  attune_graph_destroy(graph);
  cudaFree(foreign);
  attune_pointer_info gone = {0};
  OK(attune_pointer_get_info(&gone, foreign));
  assert_true(gone.kind != ATTUNE_KIND_DEVICE && !gone.device && !gone.base);
  OK(attune_free(own, stream));
  OK(attune_pinned_free(pinned));
  cudaFree(managed);
  cudaFreeHost(locked);
  free(plain);
  assert_no_stale_error();
}

/* A copy from it is asynchronous: the error mode of attune_set_sync_debug refuses it while it is pageable. */
TEST(registered_memory) {
  const size_t bytes = (size_t)8 << 20;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *there = device_memory(bytes);
  assert_ptr_not_equal(memory, MAP_FAILED);
  memset(memory, 9, bytes);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_ERROR));
  FAILS(attune_copy(stream, there, memory, bytes), ATTUNE_BUSY);
  OK(attune_pinned_register(device, memory, bytes));
  OK(attune_copy(stream, there, memory, bytes));
  OK(attune_copy_2d(stream, memory, 1024, there + bytes / 2, 2048, 1024, 100));
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF));
  wait_for_it();
  assert_int_equal(memory[1024 * 100 - 1], 9);
  assert_info(memory + 5000, ATTUNE_KIND_PINNED, device, memory, bytes, 1);
  FAILS(attune_pinned_register(device, memory + 4096, 4096), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pinned_register(device, there, 4096), ATTUNE_INVALID_ARGUMENT);
  OK(attune_pinned_unregister(memory));
  assert_info(memory + 5000, ATTUNE_KIND_HOST, NULL, NULL, 0, 0);
  assert_int_equal(cudaHostRegister(memory, 4096, cudaHostRegisterDefault), cudaSuccess); /* by the program */
  FAILS(attune_pinned_register(device, memory, 4096), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(cudaHostUnregister(memory), cudaSuccess);
  OK(attune_free(there, stream));
  munmap(memory, bytes);
  assert_no_stale_error();
}

/* ---- managed memory ---- */

TEST(managed_memory) {
  attune_pool *pool = NULL;
  attune_device *host = NULL, *both[2];
  attune_pool_options options = ATTUNE_POOL_OPTIONS_INIT;
  attune_managed_options managed = ATTUNE_MANAGED_OPTIONS_INIT;
  attune_managed_state kept = {0};
  int *memory = NULL;
  const size_t count = (size_t)1 << 20, bytes = count * sizeof *memory;
  OK(attune_device_get(&host, "host"));
  both[0] = host;
  both[1] = device;
  managed.preferred = device;
  managed.accessed_by = both;
  managed.accessed_by_count = 1;
  options.managed = &managed;
  const attune_status made = attune_pool_create(&pool, device, &options);
  if (made == ATTUNE_UNSUPPORTED) {
    print_message("no managed memory with advice: %s\n", attune_last_message());
    return;
  }
  OK(made);
  OK(attune_pool_begin(pool, stream));
  OK(attune_alloc((void **)&memory, stream, bytes));
  OK(attune_pool_end(pool, stream));
  assert_info((char *)memory + 1000, ATTUNE_KIND_MANAGED, device, memory, bytes, 1);
  OK(attune_managed_get_state(&kept, device, memory, bytes));
  assert_ptr_equal(kept.preferred, device);
  assert_true(kept.read_mostly == 0 && kept.accessed_by_count == 1 && kept.accessed_by[0] == host && !kept.prefetched);
  const int value = 1234;
  OK(attune_fill_elements(stream, memory, &value, sizeof value, count)); /* by the device ... */
  wait_for_it();
  for (size_t i = 0; i < count; i++) assert_int_equal(memory[i], value); /* ... and read here */
  OK(attune_managed_prefetch(stream, memory, bytes, host));
  wait_for_it();
  OK(attune_managed_get_state(&kept, device, memory, bytes));
  assert_ptr_equal(kept.prefetched, host);
  memory[5] = 7;
  OK(attune_managed_prefetch(stream, memory, bytes, device));
  wait_for_it();
  OK(attune_managed_get_state(&kept, device, memory, bytes));
  assert_ptr_equal(kept.prefetched, device);
  managed.preferred = NULL;
  managed.read_mostly = 1;
  managed.accessed_by = both;
  managed.accessed_by_count = 2;
  OK(attune_managed_advise(device, memory, bytes, &managed));
  OK(attune_managed_get_state(&kept, device, memory, bytes));
  assert_true(kept.read_mostly == 1 && !kept.preferred && kept.accessed_by_count == 2);
  managed.accessed_by_count = 0;
  managed.read_mostly = 0;
  OK(attune_managed_advise(device, memory, bytes, &managed));
  OK(attune_managed_get_state(&kept, device, memory, bytes));
  assert_true(kept.read_mostly == 0 && !kept.preferred && kept.accessed_by_count == 0);
  assert_int_equal(memory[5], 7);
  static int plain[4096];
  FAILS(attune_managed_get_state(&kept, device, NULL, 100), ATTUNE_INVALID_ARGUMENT);
  void *own = device_memory(4096);
  FAILS(attune_managed_advise(device, own, 4096, &managed), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_managed_prefetch(stream, own, 4096, device), ATTUNE_INVALID_ARGUMENT);
  (void)plain;
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_begin(graph, stream, NULL));
  FAILS(attune_managed_prefetch(stream, memory, bytes, device), ATTUNE_CAPTURING);
  OK(attune_fill(stream, memory, 3, bytes));
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_replay(graph, stream));
  wait_for_it();
  assert_int_equal(memory[count - 1], 0x03030303);
  attune_graph_destroy(graph);
  OK(attune_free(own, stream));
  OK(attune_free(memory, stream));
  attune_pool_destroy(pool);
  wait_for_it();
}

/* ---- copies that convert ---- */

TEST(converted_copies) {
  enum { NUMBERS = 100000 };
  static double doubles[NUMBERS], back[NUMBERS];
  static float floats[NUMBERS];
  float *there = device_memory(NUMBERS * sizeof *there), *pinned = NULL;
  uint16_t *halves = device_memory(NUMBERS * sizeof *halves);
  OK(attune_pinned_alloc((void **)&pinned, device, sizeof floats));
  for (int i = 0; i < NUMBERS; i++) doubles[i] = (i % 4001) * 0.125 - 250;                   /* halves have them all */
  OK(attune_copy_converted(tuner, stream, there, ATTUNE_F32, doubles, ATTUNE_F64, NUMBERS)); /* pageable, up */
  OK(attune_copy_converted(tuner, stream, halves, ATTUNE_F16, there, ATTUNE_F32, NUMBERS));  /* on the device */
  OK(attune_copy_converted(tuner, stream, pinned, ATTUNE_F32, halves, ATTUNE_F16, NUMBERS)); /* down, pinned */
  OK(attune_copy_converted(tuner, stream, back, ATTUNE_F64, pinned, ATTUNE_F32, NUMBERS));   /* from here to here */
  OK(attune_copy_converted(tuner, stream, floats, ATTUNE_F32, there, ATTUNE_F32, NUMBERS));  /* nothing to convert */
  wait_for_it();
  for (int i = 0; i < NUMBERS; i++) {
    if (back[i] != doubles[i]) fail_msg("number %d is %g; should be %g", i, back[i], doubles[i]);
    assert_true(floats[i] == (float)doubles[i]);
  }
  attune_graph *graph = new_graph();
  memset(pinned, 0, sizeof floats);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_copy_converted(tuner, stream, pinned, ATTUNE_F32, halves, ATTUNE_F16, NUMBERS));
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_replay(graph, stream));
  wait_for_it();
  for (int i = 0; i < NUMBERS; i++) assert_true(pinned[i] == (float)doubles[i]);
  attune_graph_destroy(graph);
  OK(attune_free(there, stream));
  OK(attune_free(halves, stream));
  OK(attune_pinned_free(pinned));
}

int main(void) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(open_stream, close_stream);
  attune_tuner_destroy(tuner);
  return failed;
}
