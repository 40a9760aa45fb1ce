/* SPDX-License-Identifier: Apache-2.0
 * address_table.c: the table of addresses: chains in buckets, changed under one lock, read without it. */
#include "src/memory/malloc/address_table.h"

#include <pthread.h>

#define BUCKET_BITS 17

static _Atomic(at_entry *) buckets[(size_t)1 << BUCKET_BITS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the chains against a second writer */

/* Addresses are multiples of 512. */
static inline _Atomic(at_entry *) *bucket_of(uintptr_t address) {
  return &buckets[((uint64_t)(address >> 9) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - BUCKET_BITS)];
}

/* An entry that is moved to another chain under the reader leads it astray: it finds nothing or, its own address being
 * out of reach of others, the right entry. The walk ends, as chains do. */
at_entry *at_address_table_find(uintptr_t address) {
  at_entry *entry = atomic_load_explicit(bucket_of(address), memory_order_acquire);
  while (entry && atomic_load_explicit(&entry->address, memory_order_relaxed) != address)
    entry = atomic_load_explicit(&entry->next, memory_order_acquire);
  return entry;
}

at_entry *at_address_table_find_surely(uintptr_t address) {
  at_entry *entry = at_address_table_find(address);
  if (entry) return entry;
  pthread_mutex_lock(&lock);
  entry = at_address_table_find(address);
  pthread_mutex_unlock(&lock);
  return entry;
}

void at_address_table_insert(at_entry *entry, uintptr_t address) {
  _Atomic(at_entry *) *bucket = bucket_of(address);
  pthread_mutex_lock(&lock);
  atomic_store_explicit(&entry->address, address, memory_order_relaxed);
  atomic_store_explicit(&entry->next, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_relaxed);
  atomic_store_explicit(bucket, entry, memory_order_release);
  pthread_mutex_unlock(&lock);
}

void at_address_table_remove(at_entry *entry) {
  uintptr_t address = atomic_load_explicit(&entry->address, memory_order_relaxed);
  _Atomic(at_entry *) *link = bucket_of(address);
  pthread_mutex_lock(&lock);
  for (at_entry *e; (e = atomic_load_explicit(link, memory_order_relaxed)); link = &e->next) {
    if (e != entry) continue;
    atomic_store_explicit(link, atomic_load_explicit(&e->next, memory_order_relaxed), memory_order_release);
    break;
  }
  atomic_store_explicit(&entry->address, 0, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
}

void at_address_table_lock(void) {
  pthread_mutex_lock(&lock);
}

void at_address_table_unlock(void) {
  pthread_mutex_unlock(&lock);
}
