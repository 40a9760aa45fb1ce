/* SPDX-License-Identifier: Apache-2.0
 * test_invariants.c: builds with assertions end at once where a structure is misused from inside: queue, blocks and
 * their tree, captures, the plan table. Each misuse in a child, which ends by SIGABRT. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/graph/graph.h"
#include "src/host/queue.h"
#include "src/memory/malloc/tree.h"
#include "tests/support/child.h"
#include "tests/support/toy/toy_op.h"
#include "tuning/plans/plan_table.h"

/* Signal that ends `misuse` in a child, or 0. */
static int end_of(void (*misuse)(void)) {
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)freopen("/dev/null", "w", stderr);
    (void)signal(SIGABRT, SIG_DFL);
    misuse();
    _exit(0);
  }
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void nothing(const void *args) {
  (void)args;
}

/* ---- the host's queue ---- */

static void wait_for_what_was_not_given(void) {
  at_queue *queue = NULL;
  if (at_queue_create(&queue) != ATTUNE_OK) return;
  at_queue_wait(queue, at_queue_submit(queue, nothing, NULL, 0) + 1);
}

static void give_a_queue_no_function(void) {
  at_queue *queue = NULL;
  if (at_queue_create(&queue) == ATTUNE_OK) (void)at_queue_submit(queue, NULL, NULL, 0);
}

static void close_a_queue_in_its_own_work(const void *args) {
  at_queue_close(*(at_queue *const *)args);
}

static void close_a_queue_from_inside(void) {
  at_queue *queue = NULL;
  if (at_queue_create(&queue) != ATTUNE_OK) return;
  at_queue_wait(queue, at_queue_submit(queue, close_a_queue_in_its_own_work, &queue, sizeof queue));
}

/* ---- blocks and their tree ---- */

static at_heap heap;
static at_segment segment;
static at_block blocks[2];
static at_allocator allocator;

static void make_blocks(void) {
  pthread_mutex_init(&allocator.lock, NULL);
  pthread_mutex_lock(&allocator.lock);
  segment.heap = &heap;
  for (int i = 0; i < 2; i++) {
    blocks[i].size = 512;
    blocks[i].segment = &segment;
    atomic_store(&blocks[i].entry.address, (uintptr_t)(4096 + 512 * i));
    at_block_set_state(&blocks[i], AT_BLOCK_LEAVING);
  }
  blocks[0].next = &blocks[1];
  blocks[1].previous = &blocks[0];
}

static void insert_a_block_twice(void) {
  make_blocks();
  at_tree_insert(&heap.trees[0], &blocks[0]);
  at_tree_insert(&heap.trees[0], &blocks[1]);
  at_tree_insert(&heap.trees[0], &blocks[1]);
}

static void change_a_size_in_the_tree(void) {
  make_blocks();
  at_tree_insert(&heap.trees[0], &blocks[0]);
  at_tree_insert(&heap.trees[0], &blocks[1]);
  blocks[0].size = 1024;
  blocks[1].size = 1024;
  at_tree_remove(&heap.trees[0], blocks[0].left || blocks[0].right ? &blocks[1] : &blocks[0]);
  blocks[0].size = blocks[1].size = 512;
  at_tree_remove(&heap.trees[0], &blocks[0]);
  at_tree_remove(&heap.trees[0], &blocks[0]);
}

static void cut_a_block_to_nothing(void) {
  make_blocks();
  (void)at_block_cut(&allocator, &blocks[0], 512);
}

static void swallow_a_stranger(void) {
  make_blocks();
  blocks[1].previous = NULL;
  at_block_swallow(&allocator, &blocks[0], &blocks[1]);
}

static void cache_without_the_lock(void) {
  make_blocks();
  pthread_mutex_unlock(&allocator.lock);
  (void)at_block_cache(&allocator, &blocks[0]);
}

/* ---- captures ---- */

static void drop_a_capture_too_often(void) {
  static at_capture capture;
  at_capture_drop(&capture);
}

static void end_a_capture_of_another_graph(void) {
  attune_device *host = NULL;
  attune_graph *graphs[2] = {NULL, NULL};
  attune_stream *stream = NULL;
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&stream, host) != ATTUNE_OK) return;
  for (int i = 0; i < 2; i++)
    if (attune_graph_create(&graphs[i], host) != ATTUNE_OK) return;
  if (attune_graph_capture_begin(graphs[0], stream, NULL) != ATTUNE_OK) return;
  graphs[1]->capture = graphs[0]->capture;
  (void)attune_graph_capture_end(graphs[1], stream);
}

/* ---- the plan table ---- */

static void put_a_plan_of_another_operation(void) {
  static at_plan_table table;
  static const attune_decision decision = {.source = ATTUNE_SOURCE_TUNED};
  static at_plan plan;
  static at_op other;
  attune_device *host = NULL;
  at_plan *given = &plan;
  if (attune_device_get(&host, "host") != ATTUNE_OK || at_plan_table_open(&table) != ATTUNE_OK) return;
  other = toy_op;
  other.id++;
  plan = (at_plan){.op = &other, .implementation = &toy_base_implementation};
  const at_key key = toy_key(TOY_PROBLEM, host);
  (void)at_plan_table_put(&table, &key, &given, &decision, false);
}

static void count_anew_without_the_lock(void) {
  static at_plan_table table;
  if (at_plan_table_open(&table) == ATTUNE_OK) at_plan_table_count_anew(&table);
}

TEST(misuse_ends_the_process) {
#define MISUSE(name) \
  { name, #name }
  static const struct {
    void (*fn)(void);
    const char *name;
  } all[] = {MISUSE(wait_for_what_was_not_given),
             MISUSE(give_a_queue_no_function),
             MISUSE(close_a_queue_from_inside),
             MISUSE(insert_a_block_twice),
             MISUSE(change_a_size_in_the_tree),
             MISUSE(cut_a_block_to_nothing),
             MISUSE(swallow_a_stranger),
             MISUSE(cache_without_the_lock),
             MISUSE(drop_a_capture_too_often),
             MISUSE(end_a_capture_of_another_graph),
             MISUSE(put_a_plan_of_another_operation),
             MISUSE(count_anew_without_the_lock)};
#undef MISUSE
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    const int signal_number = end_of(all[i].fn);
    if (signal_number != SIGABRT) fail_msg("%s ends by signal %d; should be SIGABRT", all[i].name, signal_number);
  }
}

int main(void) {
#ifdef NDEBUG
  puts("skipped: this build has no assertions");
  return 77;
#else
  if (!may_fork()) return skip_all("no fork under this checker");
  return RUN_TESTS(NULL, NULL);
#endif
}
