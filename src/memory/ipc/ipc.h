/* SPDX-License-Identifier: Apache-2.0
 * ipc.h: how memory of expandable segments goes to other processes. Its pages are file descriptors, too many for a
 * handle and useless as bytes: the handle names a service, a thread of the process that exports, and the other process
 * asks it for the descriptors.
 *
 * The service listens on an abstract Unix socket and sends descriptors as SCM_RIGHTS. Taking them out of the other
 * process instead (pidfd_getfd) needs leave to trace it, which the usual ptrace_scope of 1 and containers refuse; the
 * socket needs only that both processes are of one user, which both sides check, and share a network namespace. */
#ifndef AT_MEMORY_IPC_H
#define AT_MEMORY_IPC_H

#include "src/memory/malloc/ipc_pages.h"

#include <sys/socket.h>
#include <sys/un.h>

/* ipc_service.c: the thread that answers. Started by the first call; *out_name is its name. A child of fork has none.
 */
attune_status at_ipc_serve(unsigned char out_name[AT_IPC_NAME_BYTES]);
bool at_ipc_is_served_here(const unsigned char name[AT_IPC_NAME_BYTES]);

/* ipc_client.c: asks another process. The caller closes the socket and the descriptors. An answer that is not OK is the
 * call's status. */
attune_status at_ipc_connect(int *out_socket, const at_ipc_ticket *ticket);
attune_status at_ipc_ask(int socket, const at_ipc_question *question, at_ipc_answer *answer,
                         int descriptors[AT_IPC_BATCH]);

/* Around fork, which ipc.c watches. The order of the locks is ipc.c's, ipc_service.c's, ipc_pages.c's, then those of
 * allocators. */
void at_ipc_lock_service(void);
void at_ipc_unlock_service(bool child);

/* Room for the descriptors of one answer. */
typedef union at_ipc_control {
  struct cmsghdr align;
  char bytes[CMSG_SPACE(AT_IPC_BATCH * sizeof(int))];
} at_ipc_control;

/* The address of the service of that name; returns its length. */
socklen_t at_ipc_address(struct sockaddr_un *out, const unsigned char name[AT_IPC_NAME_BYTES]);

/* True when the process at the other end runs as this one's user. */
bool at_ipc_is_same_user(int socket);

#endif
