/* SPDX-License-Identifier: Apache-2.0
 * futex_word.c: see futex_word.h. Threads sleep on a futex. */
#include "src/host/futex_word.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/host/cpu_capacity.h"
#include "src/host/spin.h"

/* Longer than waking a halted virtual CPU takes (70 us were seen): else caller and worker put each other to sleep in
 * turns, and each call of a few microseconds takes a wake-up. */
#define SPIN_NS 200000
#define SPIN_LEAST_NS 4000

static long futex(atomic_uint *word, int operation, unsigned value, const struct timespec *most) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, most, NULL, 0);
}

/* Sequentially consistent: either the opener sees the sleeper or the sleeper sees the new word. */
void at_futex_word_open(at_futex_word *g) {
  atomic_fetch_add(&g->word, 1);
  if (atomic_load(&g->sleepers) > 0) (void)futex(&g->word, FUTEX_WAKE, INT_MAX, NULL);
}

static int64_t patience(at_futex_word *g) {
  const int64_t most = at_spin_limit(SPIN_NS), learned = atomic_load_explicit(&g->patience_ns, memory_order_relaxed);
  return learned > 0 && learned < most ? learned : most;
}

/* Grows at once and shrinks slowly: one long wait among short ones changes little. */
static void learn(at_futex_word *g, int64_t waited_ns) {
  const int64_t now = atomic_load_explicit(&g->patience_ns, memory_order_relaxed), old = now > 0 ? now : SPIN_NS;
  int64_t right = waited_ns > SPIN_NS ? SPIN_LEAST_NS : 2 * waited_ns;
  if (right > SPIN_NS) right = SPIN_NS;
  if (right < SPIN_LEAST_NS) right = SPIN_LEAST_NS;
  atomic_store_explicit(&g->patience_ns, right > old ? right : (7 * old + right) / 8, memory_order_relaxed);
}

/* The word when it has changed, or `old` when the time is over. */
static unsigned sleep_at(at_futex_word *g, unsigned old, int64_t most_ns) {
  const struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000), .tv_nsec = (long)(most_ns % 1000000000)};
  unsigned now;
  atomic_fetch_add(&g->sleepers, 1);
  while ((now = atomic_load(&g->word)) == old)
    if (futex(&g->word, FUTEX_WAIT, old, most_ns > 0 ? &most : NULL) != 0 && errno == ETIMEDOUT) break;
  atomic_fetch_sub(&g->sleepers, 1);
  return now;
}

unsigned at_futex_word_wait(at_futex_word *g, unsigned old, int64_t most_ns) {
  unsigned now = atomic_load_explicit(&g->word, memory_order_acquire);
  if (now != old) return now;
  const int64_t start = at_now_ns();
  at_spin spin = {.limit_ns = patience(g)};
  while (at_spin_turn(&spin)) {
    now = atomic_load_explicit(&g->word, memory_order_acquire);
    if (now != old) break;
  }
  if (now == old) now = sleep_at(g, old, most_ns);
  learn(g, at_now_ns() - start);
  return now;
}

void at_futex_word_reset(at_futex_word *g) {
  atomic_store(&g->word, 0);
  atomic_store(&g->sleepers, 0);
  atomic_store(&g->patience_ns, 0);
}
