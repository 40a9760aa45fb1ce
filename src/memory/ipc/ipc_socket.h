/* SPDX-License-Identifier: Apache-2.0
 * ipc_socket.h: what both ends of the connection between processes know of it. */
#ifndef AT_MEMORY_IPC_SOCKET_H
#define AT_MEMORY_IPC_SOCKET_H

#include "src/memory/ipc/ipc.h"

#include <sys/socket.h>
#include <sys/un.h>

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
