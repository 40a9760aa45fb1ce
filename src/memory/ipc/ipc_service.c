/* SPDX-License-Identifier: Apache-2.0
 * ipc_service.c: the thread that hands descriptors of this process's memory to others of the same user, from the first
 * export on. It serves one question at a time and waits for no client. */
#include "src/memory/ipc/ipc.h"
#include "src/process/floating.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 64 /* at the same time; more wait to be accepted */

/* Guards the fields, and is held by the thread whenever it has a descriptor that is in none of them: so a child of fork
 * can close all there are. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;
static unsigned char service_name[AT_IPC_NAME_BYTES];
static struct pollfd watched[1 + CONNECTIONS]; /* [0] listens */
static nfds_t watched_count;

static void drop_connection(nfds_t i) {
  close(watched[i].fd);
  watched[i] = watched[--watched_count];
}

/* False: the process has no descriptor for it now, and the client still knocks. */
static bool accept_connection(void) {
  const int connection = accept4(watched[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  if (at_ipc_is_same_user(connection))
    watched[watched_count++] = (struct pollfd){.fd = connection, .events = POLLIN};
  else
    close(connection);
  return true;
}

static bool send_answer(int connection, at_ipc_answer *answer, const int *descriptors) {
  at_ipc_control control;
  struct iovec text = {.iov_base = answer, .iov_len = sizeof *answer};
  struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
  if (answer->count > 0) {
    const size_t bytes = answer->count * sizeof *descriptors;
    memset(&control, 0, sizeof control);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(part), descriptors, bytes);
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *answer;
}

/* False: the client left, or is none. */
static bool serve_connection(int connection) {
  at_ipc_question question;
  at_ipc_answer answer;
  int descriptors[AT_IPC_BATCH];
  const ssize_t length = recv(connection, &question, sizeof question, MSG_DONTWAIT | MSG_TRUNC);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (length != (ssize_t)sizeof question) return false;
  at_ipc_answer_question(&question, &answer, descriptors);
  const bool sent = send_answer(connection, &answer, descriptors);
  for (uint32_t i = 0; i < answer.count; i++) close(descriptors[i]);
  return sent;
}

/* False: what is ready cannot be served now. */
static bool serve_ready(const struct pollfd *ready, nfds_t count) {
  for (nfds_t i = count; i-- > 1;) /* backwards: dropping one moves the last one into its place */
    if (ready[i].revents && !serve_connection(watched[i].fd)) drop_connection(i);
  return !ready[0].revents || watched_count > CONNECTIONS || accept_connection();
}

/* Only this thread changes `watched` once it runs. */
static void *serve(void *arg) {
  struct pollfd ready[1 + CONNECTIONS];
  (void)arg;
  for (;;) {
    pthread_mutex_lock(&lock);
    const nfds_t count = watched_count;
    memcpy(ready, watched, count * sizeof *ready);
    pthread_mutex_unlock(&lock);
    if (count > CONNECTIONS) ready[0].events = 0; /* full: new clients wait */
    bool well = poll(ready, count, -1) >= 0;
    if (well) {
      pthread_mutex_lock(&lock);
      well = serve_ready(ready, count);
      pthread_mutex_unlock(&lock);
    }
    if (!well) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* and not spin */
  }
  return NULL;
}

/* Lock held. */
static attune_status start(void) {
  struct sockaddr_un address;
  if (getrandom(service_name, sizeof service_name, 0) != (ssize_t)sizeof service_name)
    return at_fail(ATTUNE_IO_ERROR, "the system provides no random bytes: %s", strerror(errno));
  const socklen_t length = at_ipc_address(&address, service_name);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = listener < 0 ? errno : 0;
  if (!error && bind(listener, (const struct sockaddr *)&address, length) != 0) error = errno;
  if (!error && listen(listener, SOMAXCONN) != 0) error = errno;
  if (!error) {
    watched[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    watched_count = 1;
    error = at_thread_start(NULL, serve, NULL);
  }
  running = error == 0;
  if (running) return ATTUNE_OK;
  if (listener >= 0) close(listener);
  return at_fail(error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ? ATTUNE_OUT_OF_MEMORY
                                                                                          : ATTUNE_IO_ERROR,
                 "memory cannot be shared with other processes: no socket or thread: %s", strerror(error));
}

attune_status at_ipc_serve(unsigned char out_name[AT_IPC_NAME_BYTES]) {
  pthread_mutex_lock(&lock);
  attune_status status = running ? ATTUNE_OK : start();
  memcpy(out_name, service_name, sizeof service_name);
  pthread_mutex_unlock(&lock);
  return status;
}

bool at_ipc_is_served_here(const unsigned char name[AT_IPC_NAME_BYTES]) {
  pthread_mutex_lock(&lock);
  const bool here = running && memcmp(name, service_name, sizeof service_name) == 0;
  pthread_mutex_unlock(&lock);
  return here;
}

void at_ipc_lock_service(void) {
  pthread_mutex_lock(&lock);
}

/* A child has no such thread, and must not keep the parent's clients waiting by sockets without a reader. */
void at_ipc_unlock_service(bool child) {
  for (nfds_t i = 0; child && running && i < watched_count; i++) close(watched[i].fd);
  if (child) running = false;
  pthread_mutex_unlock(&lock);
}
