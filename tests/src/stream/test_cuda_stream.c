/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_stream.c: streams, events and devices on the GPU: no context until needed, pools and priorities, events of
 * other processes, implicit synchronization told, fork, and every way for a process to end. The test runs itself again
 * for what needs a process of its own. */
#include <attune/attune.h>
#include <attune/graph.h>

#include "tests/support/check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cuda/context/cuda.h"

#define BYTES ((size_t)64 << 20)

extern char **environ;
static attune_device *device;

static void assert_no_stale_error(void) {
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

/* Starts this program with these arguments and hands back its wait status. */
static int run_self(const char *what, const char *argument) {
  char path[4096];
  char *const arguments[] = {path, (char *)(uintptr_t)what, (char *)(uintptr_t)argument, NULL};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  assert_true(length > 0);
  path[length] = '\0';
  pid_t child = 0;
  int status = 0;
  assert_int_equal(posix_spawn(&child, path, NULL, NULL, arguments, environ), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void assert_exit(int status, int code) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
    fail_msg("wait status %#x; should be the exit with %d", (unsigned)status, code);
}

/* ---- no context until needed ---- */

/* 1: device 0 has a context, 0: none, -1: the driver does not say. */
static int has_context(void) {
  typedef int (*state_fn)(int device, unsigned *flags, int *active);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  state_fn get_state = NULL;
  unsigned flags = 0;
  int active = -1;
  if (driver) *(void **)(&get_state) = dlsym(driver, "cuDevicePrimaryCtxGetState");
  return get_state && get_state(0, &flags, &active) == 0 ? active : -1;
}

static int looks_create_no_context(void) {
  attune_device_properties p = {0};
  attune_stream *stream = NULL, *current = NULL;
  int can = 0;
  if (attune_device_count() < 2 || attune_device_get_properties(device, &p) != ATTUNE_OK) return 1;
  if (attune_device_can_access_peer(&can, device, device) != ATTUNE_OK || !can) return 2;
  if (attune_device_current() != device || attune_device_set_current(device) != ATTUNE_OK) return 3;
  if (attune_stream_wrap(&stream, device, NULL) != ATTUNE_OK) return 4;
  if (!(current = attune_stream_current(device)) || current != attune_stream_default(device)) return 5;
  attune_graph *graph = NULL;
  if (attune_graph_create(&graph, device) != ATTUNE_OK) return 6;
  attune_graph_destroy(graph);
  if (has_context() != 0) return 7;
  attune_stream *made = NULL;
  if (attune_stream_create(&made, device) != ATTUNE_OK || has_context() != 1) return 8;
  attune_stream_destroy(made);
  attune_stream_destroy(stream);
  return 0;
}

TEST(no_context_until_needed) {
  if (has_context() < 0) skip();
  assert_exit(run_self("--lazy", NULL), 0);
}

/* ---- pools ---- */

TEST(pooled_streams) {
  attune_stream *taken[33], *high = NULL;
  int least = 0, greatest = 0, given = 1;
  assert_int_equal(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  for (int i = 0; i < 33; i++) OK(attune_stream_from_pool(&taken[i], device, 0));
  assert_ptr_equal(taken[32], taken[0]);
  assert_ptr_not_equal(attune_stream_native(taken[0]), attune_stream_native(taken[1]));
  OK(attune_stream_from_pool(&high, device, -1000));
  assert_int_equal(attune_stream_priority(high), greatest);
  assert_int_equal(cudaStreamGetPriority((cudaStream_t)attune_stream_native(high), &given), cudaSuccess);
  assert_int_equal(given, greatest);
  assert_int_equal(cudaStreamGetPriority((cudaStream_t)attune_stream_native(taken[0]), &given), cudaSuccess);
  assert_int_equal(given, 0);
  unsigned flags = 0;
  assert_int_equal(cudaStreamGetFlags((cudaStream_t)attune_stream_native(high), &flags), cudaSuccess);
  assert_int_equal(flags, cudaStreamNonBlocking);
  attune_stream_destroy(high); /* left alone */
  OK(attune_stream_synchronize(high));
  assert_no_stale_error();
}

TEST(memory_info) {
  uint64_t available = 0, total = 0;
  attune_device_properties p = {0};
  OK(attune_device_get_properties(device, &p));
  OK(attune_device_memory_info(device, &available, &total));
  assert_true(available > 0 && available <= total && total <= p.memory_bytes);
}

TEST(peers) {
  attune_device *host = NULL, *other = NULL;
  int can = 1, expected = 0;
  OK(attune_device_get(&host, "host"));
  OK(attune_device_can_access_peer(&can, device, host));
  assert_int_equal(can, 0);
  FAILS(attune_device_enable_peer(device, host), ATTUNE_UNSUPPORTED);
  if (attune_device_get(&other, "cuda:1") != ATTUNE_OK) skip();
  assert_int_equal(cudaDeviceCanAccessPeer(&expected, 0, 1), cudaSuccess);
  OK(attune_device_can_access_peer(&can, device, other));
  assert_int_equal(can, expected);
  if (!can) skip();
  OK(attune_device_enable_peer(device, other));
  OK(attune_device_enable_peer(device, other));
  attune_stream *here = NULL, *there = NULL;
  unsigned char *memory = NULL, *copy = NULL, byte = 0;
  OK(attune_stream_create(&here, device));
  OK(attune_stream_create(&there, other));
  OK(attune_alloc((void **)&memory, there, 1 << 20));
  OK(attune_alloc((void **)&copy, here, 1 << 20));
  OK(attune_fill(there, memory, 77, 1 << 20));
  OK(attune_stream_synchronize(there));
  OK(attune_copy(here, copy, memory, 1 << 20));
  OK(attune_copy(here, &byte, copy + (1 << 20) - 1, 1));
  OK(attune_stream_synchronize(here));
  assert_int_equal(byte, 77);
  OK(attune_free(memory, there));
  OK(attune_free(copy, here));
  attune_stream_destroy(here);
  attune_stream_destroy(there);
  assert_no_stale_error();
}

/* ---- events ---- */

TEST(options_of_events) {
  attune_event_options options = ATTUNE_EVENT_OPTIONS_INIT;
  attune_event *event = NULL, *timed = NULL;
  attune_event_ipc words;
  attune_stream *stream = NULL;
  double ns = 0;
  OK(attune_stream_create(&stream, device));
  options.no_timing = options.blocking = 1;
  OK(attune_event_create(&event, device, &options));
  OK(attune_event_create(&timed, device, NULL));
  OK(attune_event_record(event, stream));
  OK(attune_event_record(timed, stream));
  OK(attune_event_synchronize(event));
  OK(attune_event_synchronize(timed));
  FAILS(attune_event_elapsed_ns(&ns, timed, event), ATTUNE_INVALID_ARGUMENT);
  attune_event *never = NULL;
  OK(attune_event_create(&never, device, NULL));
  FAILS_SAYING(attune_event_elapsed_ns(&ns, timed, never), ATTUNE_INVALID_ARGUMENT, "never recorded");
  attune_event_destroy(never);
  FAILS(attune_event_ipc_export(event, &words), ATTUNE_INVALID_ARGUMENT);
  attune_event_destroy(event);
  options.no_timing = 0;
  options.interprocess = 1;
  FAILS(attune_event_create(&event, device, &options), ATTUNE_INVALID_ARGUMENT);
  memset(&words, 0xab, sizeof words);
  assert_int_not_equal(attune_event_ipc_open(&event, device, &words), ATTUNE_OK);
  assert_null(event);
  attune_event_destroy(timed);
  attune_stream_destroy(stream);
  assert_no_stale_error();
}

/* The other process: waits for the event of this one. */
static int use_event(const char *hex) {
  attune_event_ipc words;
  attune_event *event = NULL;
  attune_stream *stream = NULL;
  for (size_t i = 0; i < sizeof words.bytes; i++) {
    unsigned byte = 0;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return 1;
    words.bytes[i] = (unsigned char)byte;
  }
  if (attune_event_ipc_open(&event, device, &words) != ATTUNE_OK) {
    fprintf(stderr, "%s\n", attune_last_message());
    return 2;
  }
  if (attune_stream_create(&stream, device) != ATTUNE_OK || attune_stream_wait_event(stream, event) != ATTUNE_OK)
    return 3;
  if (attune_stream_synchronize(stream) != ATTUNE_OK || attune_event_query(event) != ATTUNE_OK) return 4;
  attune_event_destroy(event);
  attune_stream_destroy(stream);
  return 0;
}

TEST(events_of_other_processes) {
  attune_event *event = NULL;
  attune_stream *stream = NULL;
  attune_event_ipc words;
  char hex[2 * sizeof words.bytes + 1];
  OK(attune_stream_create(&stream, device));
  OK(attune_event_create(&event, device, &(attune_event_options){.no_timing = 1, .interprocess = 1}));
  OK(attune_event_record(event, stream));
  const attune_status status = attune_event_ipc_export(event, &words);
  if (status == ATTUNE_UNSUPPORTED) skip(); /* containers may forbid it */
  OK(status);
  for (size_t i = 0; i < sizeof words.bytes; i++) snprintf(hex + 2 * i, 3, "%02x", words.bytes[i]);
  assert_exit(run_self("--event", hex), 0);
  attune_event_destroy(event);
  attune_stream_destroy(stream);
  assert_no_stale_error();
}

/* An event of the program's is recorded and waited for through attune, and stays the program's. */
TEST(events_are_wrapped) {
  cudaEvent_t native = NULL;
  attune_event *event = NULL;
  attune_stream *stream = NULL, *other = NULL;
  assert_int_equal(cudaEventCreate(&native), cudaSuccess);
  OK(attune_event_wrap(&event, device, native));
  assert_ptr_equal(attune_event_native(event), native);
  OK(attune_stream_create(&stream, device));
  OK(attune_stream_create(&other, device));
  OK(attune_event_record(event, stream));
  OK(attune_stream_wait_event(other, event));
  OK(attune_event_synchronize(event));
  assert_int_equal(cudaEventQuery(native), cudaSuccess);
  attune_event_destroy(event);
  assert_int_equal(cudaEventRecord(native, (cudaStream_t)attune_stream_native(stream)), cudaSuccess);
  attune_stream_destroy(stream);
  attune_stream_destroy(other);
  assert_int_equal(cudaEventDestroy(native), cudaSuccess);
  assert_no_stale_error();
}

/* ---- implicit synchronization ---- */

TEST(pageable_copies_are_told) {
  static char host[4096];
  attune_stream *stream = NULL;
  void *memory = NULL, *pinned = NULL;
  OK(attune_stream_create(&stream, device));
  OK(attune_alloc(&memory, stream, sizeof host));
  assert_int_equal(cudaMallocHost(&pinned, sizeof host), cudaSuccess);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_ERROR));
  FAILS(attune_copy(stream, memory, host, sizeof host), ATTUNE_BUSY);
  FAILS(attune_copy(stream, host, memory, sizeof host), ATTUNE_BUSY);
  OK(attune_copy(stream, memory, pinned, sizeof host));
  OK(attune_copy(stream, pinned, memory, sizeof host));
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF));
  OK(attune_copy(stream, memory, host, sizeof host));
  OK(attune_stream_synchronize(stream));
  OK(attune_free(memory, stream));
  assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
  attune_stream_destroy(stream);
  assert_no_stale_error();
}

/* Asking whose a stream is disturbs no capture, its own or another's. */
TEST(a_stream_is_wrapped_in_its_capture) {
  cudaStream_t native = NULL;
  cudaGraph_t graph = NULL;
  attune_stream *wrapped = NULL;
  assert_int_equal(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  OK(attune_stream_wrap(&wrapped, device, native));
  assert_int_equal(cudaStreamEndCapture(native, &graph), cudaSuccess);
  assert_non_null(graph);
  attune_stream_destroy(wrapped);
  assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
  assert_no_stale_error();
}

static void count_wait(void *user, attune_log_level level, const char *line) {
  if (level == ATTUNE_LOG_WARNING && strstr(line, "implicit synchronization")) ++*(int *)user;
}

/* The program's stream is waited for too, and page-locked memory goes back after the device's work. */
TEST(waits_are_told) {
  int told = 0;
  cudaStream_t native = NULL;
  attune_stream *wrapped = NULL;
  void *memory = NULL, *pinned = NULL;
  assert_int_equal(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  OK(attune_stream_wrap(&wrapped, device, native));
  OK(attune_alloc(&memory, wrapped, (size_t)1 << 30));
  OK(attune_pinned_alloc(&pinned, device, 1 << 20));
  attune_set_log(count_wait, &told, ATTUNE_LOG_WARNING);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_WARN));
  for (int i = 0; i < 100; i++) OK(attune_fill(wrapped, memory, i, (size_t)1 << 30));
  OK(attune_free(memory, wrapped));
  attune_stream_destroy(wrapped);
  assert_int_equal(told, 1);
  OK(attune_pinned_free(pinned));
  OK(attune_pinned_empty_cache(device));
  assert_true(told >= 2);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF));
  attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
  assert_no_stale_error();
}

/* ---- processes ---- */

TEST(a_child_of_fork_is_told) {
  attune_stream *stream = NULL;
  int end = 0;
  OK(attune_stream_create(&stream, device));
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    attune_stream *made = NULL;
    attune_event *event = NULL;
    alarm(20);
    if (attune_stream_create(&made, device) != ATTUNE_DEVICE_ERROR || !strstr(attune_last_message(), "before fork"))
      _exit(1);
    if (attune_stream_synchronize(stream) != ATTUNE_DEVICE_ERROR || !strstr(attune_last_message(), "before fork"))
      _exit(2);
    if (attune_event_create(&event, device, NULL) != ATTUNE_DEVICE_ERROR) _exit(3);
    if (attune_device_synchronize(device) != ATTUNE_DEVICE_ERROR) _exit(4);
    if (attune_stream_from_pool(&made, device, 0) != ATTUNE_DEVICE_ERROR) _exit(5);
    attune_stream_destroy(stream);
    attune_device *host = NULL;
    if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&made, host) != ATTUNE_OK) _exit(6);
    attune_stream_destroy(made);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_exit(end, 0);
  OK(attune_stream_synchronize(stream));
  attune_stream_destroy(stream);
}

/* Static, so that it lives to the end. */
static attune_stream *streams[4];
static attune_graph *graph;
static void *memory;
static pthread_t worker;

static attune_status many_fills(void *user, attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < 50 && status == ATTUNE_OK; i++) status = attune_fill(stream, user, i, BYTES);
  return status;
}

static void *start_work(void *arg) {
  (void)arg;
  bool ok = true;
  for (int i = 0; i < 4 && ok; i++) ok = attune_stream_from_pool(&streams[i], device, -i) == ATTUNE_OK;
  ok = ok && attune_stream_create(&streams[3], device) == ATTUNE_OK &&
       attune_alloc(&memory, streams[0], BYTES) == ATTUNE_OK && attune_graph_create(&graph, device) == ATTUNE_OK &&
       attune_graph_capture_callback(graph, streams[3], NULL, many_fills, memory) == ATTUNE_OK;
  for (int i = 0; i < 20 && ok; i++)
    ok = attune_graph_replay(graph, streams[0]) == ATTUNE_OK && many_fills(memory, streams[i % 4]) == ATTUNE_OK;
  return ok ? NULL : &worker;
}

static int end_by(const char *way) {
  void *failed = NULL;
  alarm(60);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (strcmp(way, "thread") == 0) {
    if (pthread_create(&worker, NULL, start_work, NULL) != 0) return 3;
    pthread_join(worker, &failed);
  } else {
    failed = start_work(NULL);
  }
  if (failed) return 4;
  if (strcmp(way, "_exit") == 0) _exit(0);
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "term") == 0) raise(SIGTERM);
  if (strcmp(way, "exit") == 0) exit(0);
  return 0;
}

TEST(processes_end_with_work_in_flight) {
  const char *const clean[] = {"return", "exit", "_exit", "thread"};
  for (size_t i = 0; i < AT_COUNT(clean); i++) assert_exit(run_self("--end", clean[i]), 0);
  int status = run_self("--end", "term");
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  status = run_self("--end", "abort");
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int argc, char **argv) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  if (argc > 1 && strcmp(argv[1], "--lazy") == 0) return looks_create_no_context();
  if (argc > 2 && strcmp(argv[1], "--event") == 0) return use_event(argv[2]);
  if (argc > 2 && strcmp(argv[1], "--end") == 0) return end_by(argv[2]);
  return RUN_TESTS(NULL, NULL);
}
