/* SPDX-License-Identifier: Apache-2.0
 * in_flight.c: the slots, and the barrier of the threads that read them. */
#include "src/process/in_flight.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/support.h"

enum { SLOTS = 256 };
static at_in_flight_slot slots[SLOTS];
static atomic_int used; /* slots that were ever taken: those before this one */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its value is the thread's slot, so that the end of a thread gives it back */
static atomic_bool ready; /* read at the exit too, while threads may go on */

static void thread_ends(void *value) {
  at_in_flight_slot *slot = value;
  atomic_store(&slot->gate, NULL);
  atomic_store(&slot->vendor, 0);
  atomic_store(&slot->taken, false);
}

static bool membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void start(void) {
  ready = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
          pthread_key_create(&key, thread_ends) == 0;
}

/* Threads that outlive the library must not call into it when they end. */
__attribute__((destructor)) static void stop(void) {
  if (atomic_exchange(&ready, false)) pthread_key_delete(key);
}

/* The first slots go first, so where fewer than `most` threads live each has one of the first `most`. */
void at_in_flight_ask(at_visitor *mine, int most) {
  mine->asked = true;
  pthread_once(&once, start);
  at_in_flight_slot *const own = ready ? pthread_getspecific(key) : NULL; /* the thread's other visitor has asked */
  if (own) mine->slot = own - slots < most ? own : NULL;
  for (int i = 0; i < SLOTS && i < most && ready && !own; i++) {
    bool taken = false;
    if (!atomic_compare_exchange_strong(&slots[i].taken, &taken, true)) continue;
    int seen = atomic_load(&used);
    while (seen <= i && !atomic_compare_exchange_weak(&used, &seen, i + 1)) {}
    if (pthread_setspecific(key, &slots[i]) == 0)
      mine->slot = &slots[i];
    else
      atomic_store(&slots[i].taken, false);
    return;
  }
}

bool at_in_flight_others_live(const at_visitor *mine) {
  for (int i = 0; i < atomic_load(&used); i++)
    if (&slots[i] != mine->slot && atomic_load(&slots[i].taken)) return true;
  return false;
}

/* A child of fork may have to register again. Should the kernel still refuse it, a processor's stores are seen
 * after a millisecond's sleep too. */
void at_in_flight_barrier(const at_visitor *mine) {
  if (!at_in_flight_others_live(mine)) return;
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
      (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
    return;
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

bool at_in_flight_others(const at_visitor *mine, const void *gate) {
  for (int i = 0; i < atomic_load(&used); i++)
    if (&slots[i] != mine->slot && atomic_load(&slots[i].gate) == gate) return true;
  return false;
}

int at_in_flight_count(const at_visitor *mine, int value) {
  int count = 0;
  for (int i = 0; i < atomic_load(&used); i++)
    if (&slots[i] != mine->slot && atomic_load(&slots[i].vendor) == value) count++;
  return count;
}

void at_in_flight_after_fork(void) {
  const at_in_flight_slot *own = ready ? pthread_getspecific(key) : NULL;
  for (int i = 0; i < SLOTS; i++) {
    if (&slots[i] == own) continue;
    atomic_store(&slots[i].gate, NULL);
    atomic_store(&slots[i].vendor, 0);
    atomic_store(&slots[i].taken, false);
  }
}
