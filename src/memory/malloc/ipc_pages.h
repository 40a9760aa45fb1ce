/* SPDX-License-Identifier: Apache-2.0
 * ipc_pages.h: pages of expandable segments that this process gave to others, and the messages that speak of them. */
#ifndef AT_MEMORY_IPC_PAGES_H
#define AT_MEMORY_IPC_PAGES_H

#include "src/memory/malloc/allocator.h"

#define AT_IPC_BATCH 32 /* descriptors in one answer; the system takes 253 */
#define AT_IPC_NAME_BYTES 16

/* Contents of attune_memory_handle.base for pages; of a plain segment they are the backend's. */
typedef struct at_ipc_ticket {
  char magic[8]; /* AT_IPC_MAGIC */
  uint32_t version;
  int32_t process;                       /* for messages: another container may know it by another number */
  unsigned char name[AT_IPC_NAME_BYTES]; /* of the service: random, so never that of a later process */
  uint64_t id;                           /* of the range of pages, never used again */
  uint64_t zero[2];
  uint64_t checksum; /* of what comes before */
} at_ipc_ticket;

#define AT_IPC_MAGIC "attunevm"
#define AT_IPC_VERSION 1

/* To the service, and back. The memory lies `offset` bytes after the first page of the range. */
typedef struct at_ipc_question {
  uint64_t id, offset, bytes;
  uint64_t page; /* the first one wanted; AT_IPC_NO_PAGE: only whether the memory is there */
} at_ipc_question;

#define AT_IPC_NO_PAGE UINT64_MAX

typedef struct at_ipc_answer {
  int32_t status;      /* attune_status */
  uint32_t count;      /* descriptors sent with it */
  uint64_t page_bytes; /* of each page */
  uint64_t pages;      /* of the range */
  char message[256];
} at_ipc_answer;

/* Makes *out, which has the service's name, a ticket for the pages around [pointer, pointer + bytes) of an expandable
 * segment, and says where the memory lies behind the first one. */
attune_status at_ipc_note(at_ipc_ticket *out, uint64_t *out_offset, const at_segment *segment, const void *pointer,
                          size_t bytes);
/* Pages of the segment are about to be unmapped: tickets for them are void. Not under the allocator's lock. */
void at_ipc_forget(const at_segment *segment, size_t first, size_t count);
/* Fills *answer, and the descriptors of answer->count pages, which the caller closes. */
void at_ipc_answer_question(const at_ipc_question *question, at_ipc_answer *answer, int descriptors[AT_IPC_BATCH]);
/* False: the handle is of a plain segment. */
bool at_ipc_is_ticket(const unsigned char base[64]);
/* INVALID_ARGUMENT for a ticket that is damaged or of another version. */
attune_status at_ipc_check_ticket(const at_ipc_ticket *ticket);

/* Around fork: ipc.c watches it. */
void at_ipc_lock_pages(void);
void at_ipc_unlock_pages(void);

#endif
