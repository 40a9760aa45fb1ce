/* SPDX-License-Identifier: Apache-2.0
 * ipc.c: memory of this process for others, and of others for this one. A plain segment is exported as a whole, of an
 * expandable one the pages around the memory, which lies at an offset in them; what is opened of another process is
 * opened once and counted. */
#include "src/memory/ipc/ipc.h"

#include "src/process/fork.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct opened {
  struct opened *next;
  attune_device *device;
  unsigned char handle[64];
  char *base;
  uint64_t bytes; /* of a plain segment as far as anybody asked for; of pages all */
  uint64_t count;
  uint64_t *pages; /* the backend's handles of the pages; NULL: a plain segment */
  size_t page_count, page_bytes;
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and opening and closing */
static opened *list;

/* ---- fork: the child finds the locks free, and no service ---- */

static void before_fork(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  at_ipc_lock_service();
  at_ipc_lock_pages();
}

static void after_fork(void *unused, bool child) {
  (void)unused;
  at_ipc_unlock_pages();
  at_ipc_unlock_service(child);
  pthread_mutex_unlock(&lock);
}

/* What is asked for later is called earlier: ours come before the allocators' locks, as the service takes them. */
static void ask_for_forks(void) {
  at_memory_watch_fork();
  static at_fork_watch watch = {.before = before_fork, .after = after_fork};
  at_fork_watch_add(&watch);
}

static void watch_fork(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ask_for_forks);
}

/* ---- export ---- */

/* The caller holds the memory, so the segment stays. */
static attune_status export_segment(attune_memory_handle *out, attune_device *device, const at_segment *segment,
                                    const void *pointer) {
  out->offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)segment->base);
  return device->backend.ipc->memory_export(device, segment->base, out->base);
}

/* Memory that attune did not take itself may lie inside a larger piece, which is what the other process opens. */
static attune_status export_foreign(attune_memory_handle *out, attune_device *device, const at_segment *segment,
                                    const void *pointer) {
  attune_pointer_info info = {.kind = ATTUNE_KIND_UNKNOWN};
  attune_status status = device->backend.memory->pointer_info(device, &info, segment->base);
  if (status == ATTUNE_OK && info.kind == ATTUNE_KIND_DEVICE && info.base && !segment->async) {
    out->offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)info.base);
    if (device->backend.ipc->memory_export(device, info.base, out->base) == ATTUNE_OK) return ATTUNE_OK;
  }
  return at_fail(ATTUNE_UNSUPPORTED,
                 "%p lies in memory of %s that CUDA cannot export; should be from attune's cache or from cudaMalloc",
                 pointer, segment->async ? "the driver's allocator" : "the program's allocator");
}

static attune_status export_pages(attune_memory_handle *out, const at_segment *segment, const void *pointer,
                                  size_t bytes) {
  at_ipc_ticket ticket = {.version = 0};
  watch_fork();
  attune_status status = at_ipc_serve(ticket.name);
  if (status == ATTUNE_OK) status = at_ipc_note(&ticket, &out->offset, segment, pointer, bytes);
  if (status == ATTUNE_OK) memcpy(out->base, &ticket, sizeof ticket);
  return status;
}

attune_status attune_memory_export(attune_memory_handle *out, const void *pointer) {
  void *start = NULL;
  size_t bytes = 0;
  AT_REQUIRE_AS(out, "point to an attune_memory_handle");
  *out = (attune_memory_handle){{0}, 0, 0};
  AT_TRY(attune_memory_range(pointer, &start, &bytes));
  const at_block *block = (const at_block *)at_address_table_find_surely((uintptr_t)pointer);
  const at_segment *segment = block->segment;
  const at_allocator *allocator = segment->heap->pool->allocator;
  attune_device *device = allocator->device;
  const bool pages = at_segment_expandable(segment);
  AT_TRY(at_needs(device, ipc));
  const bool foreign = segment->heap->pool->own_allocator || allocator->has_own || segment->async;
  attune_status status = pages     ? export_pages(out, segment, pointer, bytes)
                         : foreign ? export_foreign(out, device, segment, pointer)
                                   : export_segment(out, device, segment, pointer);
  if (status == ATTUNE_OK)
    out->bytes = bytes;
  else
    *out = (attune_memory_handle){{0}, 0, 0};
  return status;
}

/* ---- import. Lock held. ---- */

/* One that could not be closed to the end is not opened again. */
static bool is_whole(const opened *o) {
  return !o->pages || o->page_count * o->page_bytes == o->bytes;
}

static opened *find_opened(const attune_device *device, const attune_memory_handle *handle) {
  for (opened *o = list; o; o = o->next)
    if (o->device == device && is_whole(o) && memcmp(o->handle, handle->base, sizeof o->handle) == 0) return o;
  return NULL;
}

/* Fails at the first page that the device does not take back, as in a capture: it and those before it stay open. */
static attune_status close_pages(opened *o) {
  const at_backend_vm *vm = o->device->backend.vm;
  attune_status status = ATTUNE_OK;
  while (o->page_count > 0) {
    char *address = o->base + (o->page_count - 1) * o->page_bytes;
    status = vm->unmap(o->device, address, o->page_bytes, o->pages[o->page_count - 1]);
    if (status != ATTUNE_OK) return status;
    o->page_count--;
  }
  vm->release(o->device, o->base, o->bytes);
  free(o->pages);
  o->pages = NULL;
  return ATTUNE_OK;
}

/* Maps what an answer brought, behind what is there; closes the descriptors whatever happens. */
static attune_status map_pages(opened *made, const at_ipc_answer *answer, const int *descriptors) {
  attune_status status = ATTUNE_OK;
  for (uint32_t i = 0; i < answer->count; i++) {
    char *address = made->base + made->page_count * made->page_bytes;
    uint64_t *page = &made->pages[made->page_count];
    if (status == ATTUNE_OK)
      status = made->device->backend.ipc->page_import(made->device, address, made->page_bytes, descriptors[i], page);
    if (status == ATTUNE_OK) made->page_count++;
    close(descriptors[i]);
  }
  return status;
}

/* Room for all pages, by what the first answer says of them. */
static attune_status reserve_pages(opened *made, const at_ipc_answer *answer) {
  void *base = NULL;
  if (answer->pages == 0 || answer->page_bytes == 0 || answer->pages > PTRDIFF_MAX / answer->page_bytes)
    return at_fail(ATTUNE_BAD_DATA, "the process that exported the memory reports %llu pages of %llu bytes",
                   (unsigned long long)answer->pages, (unsigned long long)answer->page_bytes);
  made->pages = calloc(answer->pages, sizeof *made->pages);
  if (!made->pages) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record another process's memory");
  made->page_bytes = answer->page_bytes;
  made->bytes = answer->pages * answer->page_bytes;
  attune_status status = made->device->backend.vm->reserve(made->device, &base, made->bytes);
  made->base = base;
  if (status == ATTUNE_OK) return ATTUNE_OK;
  free(made->pages);
  made->pages = NULL;
  return status;
}

/* Pages of one answer, which must be the next ones. */
static attune_status take_pages(opened *made, int socket, at_ipc_question *question) {
  at_ipc_answer answer;
  int descriptors[AT_IPC_BATCH];
  question->page = made->page_count;
  attune_status status = at_ipc_ask(socket, question, &answer, descriptors);
  if (status != ATTUNE_OK) return status;
  if (!made->pages) status = reserve_pages(made, &answer);
  const size_t missing = made->pages ? made->bytes / made->page_bytes - made->page_count : 0;
  if (status == ATTUNE_OK && (answer.count == 0 || answer.count > missing))
    status = at_fail(ATTUNE_BAD_DATA, "the process that exported the memory sent %u pages, but %zu are needed",
                     (unsigned)answer.count, missing);
  if (status == ATTUNE_OK) return map_pages(made, &answer, descriptors);
  for (uint32_t i = 0; i < answer.count; i++) close(descriptors[i]);
  return status;
}

static attune_status open_pages(opened *made, int socket, at_ipc_question *question) {
  attune_status status = ATTUNE_OK;
  do status = take_pages(made, socket, question);
  while (status == ATTUNE_OK && made->page_count * made->page_bytes < made->bytes);
  if (status != ATTUNE_OK && made->pages) {
    char why[512]; /* closing may fail too, and say less */
    (void)at_copy_text(why, sizeof why, attune_last_message());
    if (close_pages(made) != ATTUNE_OK) free(made->pages); /* their memory is lost, as the device is */
    (void)at_fail(status, "%s", why);
  }
  return status;
}

static attune_status open_segment(opened *made) {
  void *base = NULL;
  attune_status status = made->device->backend.ipc->memory_open(made->device, made->handle, &base);
  made->base = base;
  return status;
}

/* The other process is asked even when its pages are open here: whether the memory is still what was exported. */
static attune_status ask_again(int socket, at_ipc_question *question) {
  at_ipc_answer answer;
  int descriptors[AT_IPC_BATCH];
  question->page = AT_IPC_NO_PAGE;
  attune_status status = at_ipc_ask(socket, question, &answer, descriptors);
  for (uint32_t i = 0; status == ATTUNE_OK && i < answer.count; i++) close(descriptors[i]);
  return status;
}

/* socket < 0: a plain segment. */
static attune_status open_base(attune_device *device, const attune_memory_handle *handle, int socket, opened **out) {
  at_ipc_ticket ticket;
  memcpy(&ticket, handle->base, sizeof ticket);
  at_ipc_question question = {.id = ticket.id, .offset = handle->offset, .bytes = handle->bytes};
  *out = find_opened(device, handle);
  if (*out) return socket < 0 ? ATTUNE_OK : ask_again(socket, &question);
  opened *made = calloc(1, sizeof *made);
  if (!made) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record another process's memory");
  *made = (opened){.next = list, .device = device};
  memcpy(made->handle, handle->base, sizeof made->handle);
  attune_status status = socket < 0 ? open_segment(made) : open_pages(made, socket, &question);
  if (status != ATTUNE_OK) {
    free(made);
    return status;
  }
  list = *out = made;
  return ATTUNE_OK;
}

static attune_status check_handle(const attune_device *device, const attune_memory_handle *handle, bool pages) {
  at_ipc_ticket ticket;
  if (handle->offset > PTRDIFF_MAX || handle->bytes == 0 || handle->bytes > PTRDIFF_MAX)
    return AT_INVALID("handle has offset %llu and %llu bytes; should be unchanged since attune_memory_export",
                      (unsigned long long)handle->offset, (unsigned long long)handle->bytes);
  attune_status status = at_needs(device, ipc);
  if (status != ATTUNE_OK || !pages) return status;
  memcpy(&ticket, handle->base, sizeof ticket);
  if (at_ipc_is_served_here(ticket.name))
    return AT_INVALID("handle is from this process, which can use the memory directly; should be from another process");
  return at_ipc_check_ticket(&ticket);
}

static attune_status import(void **out, attune_device *device, const attune_memory_handle *handle, int socket) {
  opened *base = NULL;
  pthread_mutex_lock(&lock);
  attune_status status = open_base(device, handle, socket, &base);
  if (status == ATTUNE_OK) {
    base->count++;
    if (base->bytes < handle->offset + handle->bytes) base->bytes = handle->offset + handle->bytes;
    *out = base->base + handle->offset;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

attune_status attune_memory_import(void **out, attune_device *device, const attune_memory_handle *handle) {
  at_ipc_ticket ticket;
  int socket = -1;
  AT_REQUIRE_AS(out, "point to a pointer");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(handle, "be a handle from attune_memory_export");
  const bool pages = at_ipc_is_ticket(handle->base);
  attune_status status = check_handle(device, handle, pages);
  if (status != ATTUNE_OK) return status;
  watch_fork();
  memcpy(&ticket, handle->base, sizeof ticket);
  if (pages) status = at_ipc_connect(&socket, &ticket);
  if (status == ATTUNE_OK) status = import(out, device, handle, socket);
  if (socket >= 0) close(socket);
  return status;
}

attune_status attune_memory_close(void *pointer, attune_device *device) {
  if (!pointer) return ATTUNE_OK;
  AT_REQUIRE_DEVICE(device);
  attune_status status =
      AT_INVALID("%p is not open on %s; should be a pointer from attune_memory_import", pointer, device->name);
  pthread_mutex_lock(&lock);
  for (opened **link = &list; *link; link = &(*link)->next) {
    opened *o = *link;
    if (o->device != device || (uintptr_t)pointer - (uintptr_t)o->base >= o->bytes) continue;
    status = ATTUNE_OK;
    if (o->count > 1) {
      o->count--;
      break;
    }
    status = o->pages ? close_pages(o) : device->backend.ipc->memory_close(device, o->base);
    if (status != ATTUNE_OK) break; /* it may be closed later */
    *link = o->next;
    free(o);
    break;
  }
  pthread_mutex_unlock(&lock);
  return status;
}
