/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_jit.c: kernels compiled at run time: from the compiler, the disk or memory, by several threads, in a
 * capture, and when they are wrong; and the padding kernel on the device. */
#include "src/cuda/jit/jit.h"

#include <attune/attune.h>

#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/gpu.h"

#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pad_cases.h"

#define RANDOM_CASES 100
#define THREADS 8
#define KINDS 4

extern char **environ;
static attune_device *device;
static attune_stream *stream;
static char root[64];

/* out[i] = ANSWER + i for one block. */
#define FILL_TEXT                                                                                                   \
  "struct argument { int *out; int base; };\n"                                                                      \
  "extern \"C\" __global__ void fill(const __grid_constant__ argument a) { a.out[threadIdx.x] = ANSWER + a.base + " \
  "threadIdx.x; }\n"
typedef struct fill_argument {
  int *out;
  int base;
} fill_argument;

static const char *const answers[KINDS][2] = {
    {"ANSWER=100", NULL}, {"ANSWER=200", NULL}, {"ANSWER=300", NULL}, {"ANSWER=400", NULL}};

static at_kernel_source fill_source(const char *file, int kind) {
  return (at_kernel_source){.file = file, .text = FILL_TEXT, .entry = "fill", .macros = answers[kind]};
}

static at_jit_counts counts(void) {
  at_jit_counts c;
  at_jit_get_counts(&c);
  return c;
}

static void assert_fills(at_jit_kernel *kernel, int first) {
  int host[32];
  void *memory = NULL;
  OK(attune_alloc(&memory, stream, sizeof host));
  OK(at_jit_launch(kernel, &AT_JIT_ROW(1, 32), &(fill_argument){memory, 7}, stream));
  OK(attune_copy(stream, host, memory, sizeof host));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < 32; i++) assert_int_equal(host[i], first + 7 + i);
  OK(attune_free(memory, stream));
}

TEST(compiled_once_then_from_memory) {
  const at_kernel_source source = fill_source("once.cu", 0), other = fill_source("once.cu", 1);
  at_jit_kernel *first = NULL, *second = NULL, *third = NULL;
  const at_jit_counts before = counts();
  OK(at_jit_get(&first, device, &source));
  assert_int_equal(counts().compiled, before.compiled + 1);
  OK(at_jit_get(&second, device, &source));
  assert_ptr_equal(first, second);
  assert_int_equal(counts().compiled, before.compiled + 1);
  assert_int_equal(counts().from_memory, before.from_memory + 1);
  OK(at_jit_get(&third, device, &other));
  assert_ptr_not_equal(first, third);
  assert_fills(first, 100);
  assert_fills(third, 200);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

TEST(wrong_texts_say_what_is_wrong) {
  at_kernel_source source = {
      .file = "wrong.cu", .entry = "fill", .text = "extern \"C\" __global__ void fill() {\n  nothing = 1;\n}\n"};
  at_jit_kernel *kernel = NULL;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(at_jit_get(&kernel, device, &source), ATTUNE_INTERNAL);
    assert_null(kernel);
    assert_non_null(strstr(attune_last_message(), "wrong.cu(2)"));
    assert_non_null(strstr(attune_last_message(), "nothing"));
  }
  source = fill_source("entry.cu", 0);
  source.entry = "no_such_kernel";
  assert_int_not_equal(at_jit_get(&kernel, device, &source), ATTUNE_OK);
  assert_null(kernel);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  source.entry = "fill";
  OK(at_jit_get(&kernel, device, &source));
  assert_fills(kernel, 100);
}

typedef struct job {
  const at_kernel_source *source;
  at_jit_kernel *kernel;
  attune_status status;
  char message[256];
} job;

static pthread_barrier_t start;

static void *get_kernel(void *pointer) {
  job *j = pointer;
  pthread_barrier_wait(&start);
  j->status = at_jit_get(&j->kernel, device, j->source);
  (void)at_copy_text(j->message, sizeof j->message, attune_last_message());
  return NULL;
}

static void run_jobs(job *jobs) {
  pthread_t threads[THREADS];
  assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, get_kernel, &jobs[i]), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  pthread_barrier_destroy(&start);
}

TEST(threads_compile_each_kernel_once) {
  at_kernel_source sources[KINDS];
  job jobs[THREADS] = {{0}};
  for (int i = 0; i < KINDS; i++) sources[i] = fill_source("threads.cu", i);
  for (int i = 0; i < THREADS; i++) jobs[i].source = &sources[i % KINDS];
  const at_jit_counts before = counts();
  run_jobs(jobs);
  assert_int_equal(counts().compiled, before.compiled + KINDS);
  for (int i = 0; i < THREADS; i++) {
    OK(jobs[i].status);
    assert_ptr_equal(jobs[i].kernel, jobs[i % KINDS].kernel);
    assert_fills(jobs[i].kernel, 100 * (i % KINDS + 1));
  }
}

TEST(threads_share_a_failure) {
  const at_kernel_source source = {
      .file = "shared.cu", .entry = "fill", .text = "extern \"C\" __global__ void fill() { wrong }\n"};
  job jobs[THREADS] = {{0}};
  for (int i = 0; i < THREADS; i++) jobs[i].source = &source;
  run_jobs(jobs);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(jobs[i].status, ATTUNE_INTERNAL);
    assert_non_null(strstr(jobs[i].message, "shared.cu(1)"));
  }
}

/* A kernel that is met first within a capture is compiled, loaded and captured. */
TEST(in_a_capture) {
  const at_kernel_source source = fill_source("capture.cu", 2);
  at_jit_kernel *kernel = NULL;
  at_graph *graph = NULL;
  int host[32] = {0};
  void *memory = NULL;
  OK(attune_alloc(&memory, stream, sizeof host));
  OK(attune_stream_synchronize(stream));
  OK(device->backend.graph->capture_begin(stream));
  const attune_status got = at_jit_get(&kernel, device, &source);
  const attune_status launched =
      got == ATTUNE_OK ? at_jit_launch(kernel, &AT_JIT_ROW(1, 32), &(fill_argument){memory, 1}, stream) : got;
  OK(device->backend.graph->capture_end(stream, &graph));
  OK(got);
  OK(launched);
  for (int round = 0; round < 2; round++) {
    OK(attune_fill(stream, memory, 0, sizeof host));
    OK(device->backend.graph->launch(graph, stream));
    OK(attune_copy(stream, host, memory, sizeof host));
    OK(attune_stream_synchronize(stream));
    for (int i = 0; i < 32; i++) assert_int_equal(host[i], 301 + i);
  }
  device->backend.graph->destroy(graph);
  OK(attune_free(memory, stream));
}

/* This program again, which gets one kernel and says by its exit status where it came from: 1 compiler, 2 disk. */
static int ask_another_process(void) {
  char name[] = "test_cuda_jit", mode[] = "child";
  char *arguments[] = {name, mode, NULL};
  pid_t child = -1;
  int status = -1;
  assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int be_another_process(void) {
  const at_kernel_source source = fill_source("disk.cu", 3);
  at_jit_kernel *kernel = NULL;
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK || at_jit_get(&kernel, device, &source) != ATTUNE_OK)
    return 3;
  return counts().compiled == 1 ? 1 : counts().from_disk == 1 ? 2 : 4;
}

static int damage_every_entry(void) {
  char folder[96], path[512];
  int damaged = 0;
  snprintf(folder, sizeof folder, "%s/kernels", root);
  DIR *listing = opendir(folder);
  assert_non_null(listing);
  for (struct dirent *item = readdir(listing); item; item = readdir(listing)) {
    if (item->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 200, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, 200, SEEK_SET), 0);
    fputc(byte ^ 1, file);
    assert_int_equal(fclose(file), 0);
    damaged++;
  }
  closedir(listing);
  return damaged;
}

/* At the bound a new kernel is refused while all are held, and those that are there go on. */
TEST(no_more_than_the_bound) {
  at_jit_kernel *kernel = NULL, *again = NULL;
  const at_kernel_source known = fill_source("bound-a", 0), more = fill_source("bound-b", 1);
  OK(at_jit_get(&kernel, device, &known));
  const unsigned before = at_jit_set_most(1); /* no test of this program releases a kernel before this one */
  FAILS(at_jit_get(&again, device, &more), ATTUNE_UNSUPPORTED);
  assert_null(again);
  assert_non_null(strstr(attune_last_message(), "plans and graphs use all of them"));
  OK(at_jit_get(&again, device, &known));
  assert_ptr_equal(again, kernel);
  assert_int_equal(at_jit_set_most(before), 1);
  OK(at_jit_get(&again, device, &more));
}

TEST(the_second_process_reads_the_disk) {
  assert_int_equal(ask_another_process(), 1);
  assert_int_equal(ask_another_process(), 2);
  assert_true(damage_every_entry() > 0);
  assert_int_equal(ask_another_process(), 1);
  assert_int_equal(ask_another_process(), 2);
}

static void pad_on_device(const pad_case *c, uint64_t *seed, int number) {
  pad_memory memory[AT_PAD_MATRICES];
  void *source[AT_PAD_MATRICES] = {NULL}, *destination[AT_PAD_MATRICES] = {NULL};
  at_pad_copy copies[AT_PAD_MATRICES];
  at_pad_arguments arguments;
  uint32_t blocks = 0;
  at_jit_kernel *kernel = NULL;
  for (int i = 0; i < c->count; i++) {
    assert_true(pad_make(&memory[i], c, i, seed));
    copies[i] = memory[i].copy;
  }
  assert_true(at_pad_plan(&arguments, copies, c->count, c->grain, &blocks));
  OK(at_jit_get(&kernel, device, at_pad_source(c->grain)));
  for (int i = 0; i < c->count; i++) {
    OK(attune_alloc(&source[i], stream, memory[i].source_bytes));
    OK(attune_alloc(&destination[i], stream, memory[i].destination_bytes));
    OK(attune_copy(stream, source[i], memory[i].source, memory[i].source_bytes));
    OK(attune_fill(stream, destination[i], PAD_UNTOUCHED, memory[i].destination_bytes));
    arguments.matrix[i].source = (char *)source[i] + memory[i].source_offset;
    arguments.matrix[i].destination = (char *)destination[i] + memory[i].destination_offset;
  }
  OK(at_jit_launch(kernel, &AT_JIT_ROW(blocks, AT_PAD_THREADS), &arguments, stream));
  for (int i = 0; i < c->count; i++) {
    unsigned char *got = malloc(memory[i].destination_bytes);
    assert_non_null(got);
    OK(attune_copy(stream, got, destination[i], memory[i].destination_bytes));
    OK(attune_stream_synchronize(stream));
    for (size_t b = 0; b < memory[i].destination_bytes; b++)
      if (got[b] != memory[i].expected[b])
        fail_msg("case %d, matrix %d, byte %zu is %d; should be %d", number, i, b, got[b], memory[i].expected[b]);
    free(got);
    OK(attune_free(source[i], stream));
    OK(attune_free(destination[i], stream));
    pad_free(&memory[i]);
  }
}

TEST(matrices_are_padded) {
  uint64_t seed = 11;
  for (size_t i = 0; i < AT_COUNT(pad_cases); i++) pad_on_device(&pad_cases[i], &seed, (int)i);
  for (int i = 0; i < RANDOM_CASES; i++) {
    const pad_case c = pad_random_case(&seed);
    pad_on_device(&c, &seed, 1000 + i);
  }
}

/* Says how long three matrices take, as they are padded for a GEMM; warm in L2. */
TEST(padding_is_quick) {
  enum { SIDE = 999, ROUNDS = 200 };
  const at_pad_copy one = {SIDE, SIDE, 1, SIDE, 1000, 0, 0, 2, true, 0}, copies[] = {one, one, one};
  at_pad_arguments arguments;
  uint32_t blocks = 0;
  at_jit_kernel *kernel = NULL;
  attune_event *begin = NULL, *end = NULL;
  void *memory = NULL;
  double ns = 0;
  const size_t bytes = (size_t)2 << 20;
  assert_true(at_pad_plan(&arguments, copies, 3, 2, &blocks));
  OK(at_jit_get(&kernel, device, at_pad_source(2)));
  OK(attune_alloc(&memory, stream, 6 * bytes));
  OK(attune_fill(stream, memory, 1, 6 * bytes));
  for (size_t i = 0; i < 3; i++) {
    arguments.matrix[i].source = (char *)memory + i * bytes;
    arguments.matrix[i].destination = (char *)memory + (3 + i) * bytes;
  }
  OK(attune_event_create(&begin, device, NULL));
  OK(attune_event_create(&end, device, NULL));
  for (int round = -10; round < ROUNDS; round++) {
    if (round == 0) OK(attune_event_record(begin, stream));
    OK(at_jit_launch(kernel, &AT_JIT_ROW(blocks, AT_PAD_THREADS), &arguments, stream));
  }
  OK(attune_event_record(end, stream));
  OK(attune_event_synchronize(end));
  OK(attune_event_elapsed_ns(&ns, begin, end));
  print_message("three matrices of %dx%d bf16: %.2f us a launch, one behind the other\n", SIDE, SIDE,
                ns / ROUNDS * 1e-3);
  assert_true(ns / ROUNDS < 1e5 * test_patience());
  attune_event_destroy(begin);
  attune_event_destroy(end);
  OK(attune_free(memory, stream));
}

static int run_all(void) {
  return RUN_TESTS(NULL, NULL);
}

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "child") == 0) return be_another_process();
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  snprintf(root, sizeof root, "/tmp/attune-jit-XXXXXX");
  if (!mkdtemp(root) || setenv("ATTUNE_CACHE_DIR", root, 1) != 0 || attune_stream_create(&stream, device) != ATTUNE_OK)
    return 1;
  const int failures = run_all();
  attune_stream_destroy(stream);
  return folder_remove(root) == 0 ? failures : 1;
}
