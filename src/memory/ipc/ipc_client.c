/* SPDX-License-Identifier: Apache-2.0
 * ipc_client.c: asks the process that exported memory for its descriptors. */
#include "src/memory/ipc/ipc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_S 20 /* for one answer; the service takes microseconds, but others may come first */

socklen_t at_ipc_address(struct sockaddr_un *out, const unsigned char name[AT_IPC_NAME_BYTES]) {
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  int length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "attune/"); /* [0] is 0: the name is no file */
  for (int i = 0; i < AT_IPC_NAME_BYTES; i++)
    length += snprintf(out->sun_path + 1 + length, sizeof out->sun_path - 1 - (size_t)length, "%02x", name[i]);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

bool at_ipc_is_same_user(int socket) {
  struct ucred other;
  socklen_t length = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == geteuid();
}

static attune_status fail_connect(const at_ipc_ticket *ticket, int error) {
  if (error == ECONNREFUSED || error == ENOENT)
    return at_fail(ATTUNE_NOT_FOUND,
                   "process %d, which exported the memory, has ended or is in another network namespace; should be "
                   "running in the same one",
                   (int)ticket->process);
  if (error == EACCES || error == EPERM)
    return at_fail(ATTUNE_PERMISSION, "process %d, which exported the memory, cannot be contacted: %s",
                   (int)ticket->process, strerror(error));
  if (error == EAGAIN)
    return at_fail(ATTUNE_BUSY, "process %d, which exported the memory, does not answer", (int)ticket->process);
  return at_fail(error == EMFILE || error == ENFILE || error == ENOMEM ? ATTUNE_OUT_OF_MEMORY : ATTUNE_IO_ERROR,
                 "process %d, which exported the memory, cannot be reached: %s", (int)ticket->process, strerror(error));
}

/* Anybody may take an abstract name, so the answerer must be of this user too. */
attune_status at_ipc_connect(int *out_socket, const at_ipc_ticket *ticket) {
  const struct timeval patience = {.tv_sec = PATIENCE_S};
  struct sockaddr_un address;
  const socklen_t length = at_ipc_address(&address, ticket->name);
  attune_status status = ATTUNE_OK;
  *out_socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (*out_socket < 0) return fail_connect(ticket, errno);
  (void)setsockopt(*out_socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  (void)setsockopt(*out_socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(*out_socket, (const struct sockaddr *)&address, length) != 0)
    status = fail_connect(ticket, errno);
  else if (!at_ipc_is_same_user(*out_socket))
    status = at_fail(ATTUNE_PERMISSION,
                     "process %d, which exported the memory, belongs to another user; should belong to this one",
                     (int)ticket->process);
  if (status == ATTUNE_OK) return ATTUNE_OK;
  close(*out_socket);
  *out_socket = -1;
  return status;
}

static attune_status fail_lost(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK)
    return at_fail(ATTUNE_BUSY, "the process that exported the memory does not answer");
  return at_fail(ATTUNE_NOT_FOUND,
                 "the process that exported the memory closed the connection: it ended, or belongs to another user");
}

/* The descriptors of a message into descriptors[]; how many. */
static uint32_t take_descriptors(struct msghdr *message, int descriptors[AT_IPC_BATCH]) {
  uint32_t count = 0;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here; i++) {
      int descriptor = -1;
      memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
      if (count < AT_IPC_BATCH)
        descriptors[count++] = descriptor;
      else
        close(descriptor);
    }
  }
  return count;
}

attune_status at_ipc_ask(int socket, const at_ipc_question *question, at_ipc_answer *answer,
                         int descriptors[AT_IPC_BATCH]) {
  at_ipc_control control;
  struct iovec text = {.iov_base = answer, .iov_len = sizeof *answer};
  struct msghdr message = {
      .msg_iov = &text, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  if (send(socket, question, sizeof *question, MSG_NOSIGNAL) != (ssize_t)sizeof *question) return fail_lost(errno);
  ssize_t length = 0;
  do length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (length < 0 && errno == EINTR);
  if (length <= 0) return fail_lost(length < 0 ? errno : 0);
  const uint32_t count = take_descriptors(&message, descriptors);
  attune_status status = ATTUNE_OK;
  if (message.msg_flags & MSG_CTRUNC)
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "this process has no file descriptors left for memory of another one");
  else if (length != (ssize_t)sizeof *answer || answer->count != count || answer->message[sizeof answer->message - 1])
    status = at_fail(ATTUNE_BAD_DATA,
                     "the process that exported the memory uses another protocol; should use the same attune");
  else if (answer->status != ATTUNE_OK)
    status = at_fail((attune_status)answer->status, "%s", answer->message);
  if (status == ATTUNE_OK) return ATTUNE_OK;
  for (uint32_t i = 0; i < count; i++) close(descriptors[i]);
  return status;
}
