/* SPDX-License-Identifier: Apache-2.0
 * ipc_pages.c: ranges of pages that this process gave away, by number: which descriptors another process may have. A
 * range holds no descriptor itself, so memory goes back to the device as if it had never been exported. */
#include "src/memory/malloc/ipc_pages.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(at_ipc_ticket) == 64, "attune_memory_handle has room for a ticket");

typedef struct range {
  struct range *next;
  const at_segment *segment;
  size_t first, count; /* pages of the segment */
  uint64_t id;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; allocators' locks are taken under it */
static range *list;
static uint64_t last_id;
static atomic_int list_length; /* so that unmapping asks for no lock while nothing is given away */

static uint64_t checksum_of(const at_ipc_ticket *ticket) {
  return XXH3_64bits(ticket, offsetof(at_ipc_ticket, checksum));
}

bool at_ipc_is_ticket(const unsigned char base[64]) {
  return memcmp(base, AT_IPC_MAGIC, sizeof((at_ipc_ticket *)0)->magic) == 0;
}

attune_status at_ipc_check_ticket(const at_ipc_ticket *ticket) {
  if (ticket->checksum != checksum_of(ticket))
    return AT_INVALID("handle is damaged; should be unchanged since attune_memory_export");
  if (ticket->version != AT_IPC_VERSION)
    return AT_INVALID("handle is of version %u; should be %d: both processes need the same attune",
                      (unsigned)ticket->version, AT_IPC_VERSION);
  return ATTUNE_OK;
}

/* Lock held. */
static range *find_range(const at_segment *segment, size_t first, size_t count) {
  range *found = list;
  while (found && (found->segment != segment || found->first != first || found->count != count)) found = found->next;
  return found;
}

/* Whether the device gives descriptors is known for sure when it gave one. */
static attune_status try_page(const at_segment *segment, size_t page) {
  attune_device *device = segment->heap->pool->allocator->device;
  int descriptor = -1;
  attune_status status = device->backend.ipc->page_export(device, segment->handles[page], &descriptor);
  if (status == ATTUNE_OK) close(descriptor);
  return status;
}

/* Lock held. */
static attune_status add_range(range **out, const at_segment *segment, size_t first, size_t count) {
  AT_TRY(try_page(segment, first));
  range *made = malloc(sizeof *made);
  if (!made) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record exported memory");
  *made = (range){.next = list, .segment = segment, .first = first, .count = count, .id = ++last_id};
  list = made;
  atomic_fetch_add(&list_length, 1);
  *out = made;
  return ATTUNE_OK;
}

/* The caller holds the memory, so its pages stay. */
attune_status at_ipc_note(at_ipc_ticket *out, uint64_t *out_offset, const at_segment *segment, const void *pointer,
                          size_t bytes) {
  const size_t offset = (size_t)((uintptr_t)pointer - (uintptr_t)segment->base);
  const size_t first = offset / segment->granule, count = (offset + bytes - 1) / segment->granule - first + 1;
  attune_status status = ATTUNE_OK;
  pthread_mutex_lock(&lock);
  range *found = find_range(segment, first, count);
  if (!found) status = add_range(&found, segment, first, count);
  if (status == ATTUNE_OK) out->id = found->id;
  pthread_mutex_unlock(&lock);
  memcpy(out->magic, AT_IPC_MAGIC, sizeof out->magic);
  out->version = AT_IPC_VERSION;
  out->process = (int32_t)getpid();
  out->checksum = checksum_of(out);
  *out_offset = offset - first * segment->granule;
  return status;
}

void at_ipc_forget(const at_segment *segment, size_t first, size_t count) {
  if (atomic_load(&list_length) == 0) return;
  pthread_mutex_lock(&lock);
  for (range **link = &list; *link;) {
    range *r = *link;
    if (r->segment != segment || r->first >= first + count || r->first + r->count <= first) {
      link = &r->next;
      continue;
    }
    *link = r->next;
    atomic_fetch_sub(&list_length, 1);
    free(r);
  }
  pthread_mutex_unlock(&lock);
}

static attune_status fail_freed(void) {
  return at_fail(ATTUNE_NOT_FOUND, "process %d, which exported the memory, has freed it; should be kept allocated",
                 (int)getpid());
}

/* True when an allocation of so many bytes starts there. */
static bool is_allocation(at_allocator *allocator, uintptr_t address, uint64_t bytes) {
  pthread_mutex_lock(&allocator->lock);
  at_entry *entry = at_address_table_find_surely(address);
  at_block *block = entry && entry->kind == AT_ENTRY_BLOCK ? (at_block *)entry : NULL;
  const bool alive = block && at_block_get_state(block) == AT_BLOCK_LIVE && block->rounded == bytes;
  pthread_mutex_unlock(&allocator->lock);
  return alive;
}

/* The allocation must be there as it was exported: a page of freed memory may be mapped still, or serve others. */
static attune_status check_alive(const range *r, const at_ipc_question *question) {
  const at_segment *segment = r->segment;
  const size_t limit = r->count * segment->granule;
  if (question->offset >= limit || question->bytes > limit - question->offset)
    return AT_INVALID("handle has offset %llu and %llu bytes; should be unchanged since attune_memory_export",
                      (unsigned long long)question->offset, (unsigned long long)question->bytes);
  const uintptr_t address = (uintptr_t)segment->base + r->first * segment->granule + question->offset;
  return is_allocation(segment->heap->pool->allocator, address, question->bytes) ? ATTUNE_OK : fail_freed();
}

static attune_status export_pages(const range *r, uint64_t page, at_ipc_answer *answer, int descriptors[AT_IPC_BATCH]) {
  attune_device *device = r->segment->heap->pool->allocator->device;
  attune_status status = ATTUNE_OK;
  for (; page < r->count && answer->count < AT_IPC_BATCH && status == ATTUNE_OK; page++) {
    status =
        device->backend.ipc->page_export(device, r->segment->handles[r->first + page], &descriptors[answer->count]);
    if (status == ATTUNE_OK) answer->count++;
  }
  if (status == ATTUNE_OK) return ATTUNE_OK;
  while (answer->count > 0) close(descriptors[--answer->count]);
  return status;
}

/* The lock is kept to the end: so no page of a range in the list is unmapped. */
void at_ipc_answer_question(const at_ipc_question *question, at_ipc_answer *answer, int descriptors[AT_IPC_BATCH]) {
  *answer = (at_ipc_answer){.count = 0};
  pthread_mutex_lock(&lock);
  const range *r = list;
  while (r && r->id != question->id) r = r->next;
  attune_status status = r ? check_alive(r, question) : fail_freed();
  if (status == ATTUNE_OK) {
    answer->page_bytes = r->segment->granule;
    answer->pages = r->count;
    if (question->page != AT_IPC_NO_PAGE) status = export_pages(r, question->page, answer, descriptors);
  }
  pthread_mutex_unlock(&lock);
  answer->status = (int32_t)status;
  if (status != ATTUNE_OK) (void)at_copy_text(answer->message, sizeof answer->message, attune_last_message());
}

void at_ipc_lock_pages(void) {
  pthread_mutex_lock(&lock);
}

void at_ipc_unlock_pages(void) {
  pthread_mutex_unlock(&lock);
}
