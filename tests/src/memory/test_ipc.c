/* SPDX-License-Identifier: Apache-2.0
 * test_ipc.c: memory of expandable segments between processes, with the host in the place of a GPU. The other process
 * is this program with arguments. */
#include "tests/support/check.h"

#include "tests/src/memory/memfd_backend.h"

#include <signal.h>
#include <sys/resource.h>

#include "src/memory/ipc/ipc.h"

#define MIB ((size_t)1 << 20)
#define PAGE (20 * MIB)
#define PAGES (2 * AT_IPC_BATCH + 3) /* more than two answers bring */
#define NOBODY 65534

static attune_device *host;
static attune_stream *stream;

/* ---- the other process: its exit status says what failed ---- */

static int use(const attune_memory_handle *handle) {
  void *p = NULL, *again = NULL;
  const int before = count_descriptors(false);
  if (attune_memory_import(&p, host, handle) != ATTUNE_OK) return 10;
  if (attune_memory_import(&again, host, handle) != ATTUNE_OK || p != again) return 11;
  if (count_descriptors(false) != before) return 12;
  for (uint64_t at = 0; at < handle->bytes; at += PAGE) {
    unsigned char *byte = (unsigned char *)p + at;
    if (*byte != at / PAGE + 1) return 13;
    *byte = (unsigned char)(*byte + 100);
  }
  ((unsigned char *)p)[handle->bytes - 1] = 77;
  if (attune_memory_close(p, host) != ATTUNE_OK) return 14;
  if (((unsigned char *)p)[handle->bytes - 1] != 77) return 15; /* it is open still */
  if (attune_memory_close(p, host) != ATTUNE_OK) return 16;
  return attune_memory_close(p, host) == ATTUNE_INVALID_ARGUMENT ? 0 : 17;
}

static int refuse(const attune_memory_handle *handle, attune_status status, const char *part) {
  void *p = host;
  const int before = count_descriptors(false);
  if (attune_memory_import(&p, host, handle) != status) return 20;
  if (p) return 21;
  if (!strstr(attune_last_message(), part)) return 22;
  return count_descriptors(false) == before ? 0 : 23;
}

/* Every byte of the handle in turn is another one. */
static int damaged(const attune_memory_handle *handle) {
  const int before = count_descriptors(false);
  for (size_t i = 0; i < sizeof *handle; i++) {
    attune_memory_handle wrong = *handle;
    void *p = NULL;
    ((unsigned char *)&wrong)[i] ^= 0x55;
    attune_status status = attune_memory_import(&p, host, &wrong);
    if (status != ATTUNE_INVALID_ARGUMENT && status != ATTUNE_NOT_FOUND && status != ATTUNE_UNSUPPORTED)
      return 100 + (int)i;
    if (p) return 30;
  }
  return count_descriptors(false) == before ? 0 : 31;
}

/* As many descriptors as there are, and 5: no whole answer comes in. */
static int few_descriptors(const attune_memory_handle *handle) {
  const struct rlimit limit = {.rlim_cur = (rlim_t)count_descriptors(false) + 5, .rlim_max = 1024};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 40;
  return refuse(handle, ATTUNE_OUT_OF_MEMORY, "descriptors");
}

/* Writes a handle, then waits for the end of its input. */
static int exporter(void) {
  attune_memory_handle handle;
  char text[HANDLE_TEXT], byte;
  unsigned char *p = NULL;
  if (attune_stream_create(&stream, host) != ATTUNE_OK) return 50;
  if (attune_alloc((void **)&p, stream, 4096) != ATTUNE_OK || attune_memory_export(&handle, p) != ATTUNE_OK) return 51;
  *p = 9;
  write_handle(text, &handle);
  if (write(STDOUT_FILENO, text, sizeof text) != (ssize_t)sizeof text) return 52;
  return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 53;
}

static int other_process(int count, char **arguments) {
  attune_memory_handle handle;
  host = memfd_host();
  if (!host) return 2;
  if (strcmp(arguments[1], "export") == 0) return exporter();
  if (count < 3 || !read_handle(&handle, arguments[2])) return 3;
  if (strcmp(arguments[1], "use") == 0) return use(&handle);
  if (strcmp(arguments[1], "damaged") == 0) return damaged(&handle);
  if (strcmp(arguments[1], "few") == 0) return few_descriptors(&handle);
  if (strcmp(arguments[1], "freed") == 0) return refuse(&handle, ATTUNE_NOT_FOUND, "freed");
  if (strcmp(arguments[1], "nobody") == 0)
    return setresuid(NOBODY, NOBODY, NOBODY) ? 4 : refuse(&handle, ATTUNE_PERMISSION, "another user");
  return 5;
}

/* ---- this process ---- */

/* The service notices that a client is gone some time after it went. */
static void assert_descriptors(int count) {
  for (int i = 0; i < 6000 && count_descriptors(false) != count; i++) usleep(10000);
  assert_int_equal(count_descriptors(false), count);
}

static int quiet = -1; /* sockets while no client is connected; -1: nothing was exported yet */

/* The clients of the test before are gone from the service too. */
FIXTURE(settle) {
  for (int i = 0; i < 6000 && quiet >= 0 && count_descriptors(true) > quiet; i++) usleep(10000);
  return 0;
}

static unsigned char *take(size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, bytes));
  return p;
}

FIXTURE(open_stream) {
  host = memfd_host();
  return host && attune_stream_create(&stream, host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_stream) {
  attune_stream_destroy(stream);
  return 0;
}

static void empty(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_get_statistics(host, &s));
  assert_int_equal(s.reserved_bytes[0].current, 0);
}

TEST(another_process_reads_and_writes) {
  attune_memory_handle first, second;
  unsigned char *before = take(4096), *p = take(4096);
  memset(p, 1, 4096);
  OK(attune_memory_export(&first, before));
  quiet = count_descriptors(true);
  const int descriptors = count_descriptors(false);
  OK(attune_memory_export(&second, p));
  assert_int_equal(first.offset, 0);
  assert_int_equal(second.offset, 4096);
  assert_int_equal(second.bytes, 4096);
  assert_memory_equal(first.base, second.base, sizeof first.base); /* of one page: opened once */
  finish_other(start_other("use", &second, NULL));
  assert_int_equal(p[0], 101);
  assert_int_equal(p[4095], 77);
  assert_int_equal(p[1], 1);
  assert_descriptors(descriptors);
  OK(attune_free(p, stream));
  OK(attune_free(before, stream));
  empty();
}

TEST(memory_of_many_pages) {
  attune_memory_handle handle;
  pid_t children[8];
  unsigned char *p = take(PAGES * PAGE - 4096);
  for (size_t i = 0; i < PAGES; i++) p[i * PAGE] = (unsigned char)(i + 1);
  OK(attune_memory_export(&handle, p));
  finish_other(start_other("use", &handle, NULL));
  for (size_t i = 0; i < PAGES; i++) assert_int_equal(p[i * PAGE], i + 101);
  assert_int_equal(p[PAGES * PAGE - 4097], 77);
  finish_other(start_other("few", &handle, NULL));
  for (int i = 0; i < 8; i++) children[i] = start_other("damaged", &handle, NULL); /* and all at the same time */
  for (int i = 0; i < 8; i++) finish_other(children[i]);
  OK(attune_free(p, stream));
  empty();
}

TEST(freed_memory_is_refused) {
  attune_memory_handle handle, later;
  unsigned char *p = take(3 * MIB), *neighbour = take(3 * MIB);
  OK(attune_memory_export(&handle, p));
  OK(attune_free(p, stream));
  finish_other(start_other("freed", &handle, NULL)); /* its page is mapped still */
  OK(attune_free(neighbour, stream));
  empty();
  finish_other(start_other("freed", &handle, NULL));
  p = take(3 * MIB);
  OK(attune_memory_export(&later, p));
  assert_memory_not_equal(&handle, &later, sizeof handle); /* the same addresses, other pages */
  finish_other(start_other("freed", &handle, NULL));
  OK(attune_free(p, stream));
  empty();
}

TEST(a_process_refuses_its_own) {
  attune_memory_handle handle;
  void *opened = host;
  unsigned char *p = take(100);
  OK(attune_memory_export(&handle, p));
  assert_int_equal(attune_memory_import(&opened, host, &handle), ATTUNE_INVALID_ARGUMENT);
  says("from this process");
  assert_null(opened);
  handle.base[40] ^= 1;
  memset(handle.base + 16, 7, 16);
  assert_int_equal(attune_memory_import(&opened, host, &handle), ATTUNE_INVALID_ARGUMENT);
  says("damaged");
  OK(attune_free(p, stream));
  empty();
}

static attune_status refuse_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle) {
  (void)address, (void)bytes, (void)handle;
  return at_fail(ATTUNE_CAPTURING, "%s is being captured", device->name);
}

typedef struct exporter_process {
  pid_t id;
  int in;
  attune_memory_handle handle;
} exporter_process;

static exporter_process start_exporter(void) {
  int in[2], out[2];
  char text[HANDLE_TEXT];
  exporter_process other;
  posix_spawn_file_actions_t actions;
  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO), 0);
  other.id = start_other("export", NULL, &actions);
  other.in = in[1];
  assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
  close(in[0]);
  close(out[1]);
  assert_int_equal(read(out[0], text, sizeof text), (ssize_t)sizeof text);
  close(out[0]);
  assert_true(read_handle(&other.handle, text));
  return other;
}

TEST(an_exporter_that_ends) {
  void *p = NULL, *again = NULL;
  const int descriptors = count_descriptors(false);
  exporter_process other = start_exporter();
  OK(attune_memory_import(&p, host, &other.handle));
  assert_int_equal(*(unsigned char *)p, 9);
  close(other.in);
  finish_other(other.id);
  assert_int_equal(*(unsigned char *)p, 9); /* what is open stays */
  const at_backend_vm *usual = host->backend.vm;
  at_backend_vm stubborn = *usual;
  stubborn.unmap = refuse_unmap;
  host->backend.vm = &stubborn;
  assert_int_equal(attune_memory_close(p, host), ATTUNE_CAPTURING);
  host->backend.vm = usual;
  assert_int_equal(*(unsigned char *)p, 9); /* closed below */
  assert_int_equal(attune_memory_import(&again, host, &other.handle), ATTUNE_NOT_FOUND);
  says("has ended");
  assert_null(again);
  OK(attune_memory_close(p, host));
  assert_int_equal(attune_memory_import(&again, host, &other.handle), ATTUNE_NOT_FOUND);
  assert_int_equal(count_descriptors(false), descriptors);
}

static char state_of(pid_t process) {
  char path[64], text[512] = "";
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
  FILE *file = fopen(path, "r");
  if (!file) return '?';
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  const char *name_end = strrchr(text, ')');
  return name_end && name_end[1] == ' ' ? name_end[2] : '?';
}

static int sockets_of(pid_t process) {
  char path[64], target[64];
  int count = 0;
  for (int file = 0; file < 256; file++) {
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)process, file);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    count += length > 7 && strncmp(target, "socket:", 7) == 0;
  }
  return count;
}

/* The process has a socket more than before and sleeps: ten looks one after the other. */
static void wait_until_asked(pid_t process, int sockets) {
  for (int asleep = 0; asleep < 10;) {
    usleep(10000);
    asleep = sockets_of(process) > sockets && state_of(process) == 'S' ? asleep + 1 : 0;
  }
}

/* A stopped process accepts nothing and answers nothing; one that is killed meanwhile is noticed. */
TEST(an_exporter_that_dies_while_asked) {
  void *p = NULL;
  int end = 0;
  const int descriptors = count_descriptors(false);
  exporter_process other = start_exporter();
  assert_int_equal(kill(other.id, SIGSTOP), 0);
  assert_int_equal(waitpid(other.id, &end, WUNTRACED), other.id); /* all its threads stand still */
  assert_true(WIFSTOPPED(end));
  const pid_t self = getpid();
  const int sockets = count_descriptors(true);
  pid_t killer = fork();
  assert_true(killer >= 0);
  if (killer == 0) {
    wait_until_asked(self, sockets);
    _exit(kill(other.id, SIGKILL));
  }
  assert_int_equal(attune_memory_import(&p, host, &other.handle), ATTUNE_NOT_FOUND);
  says("closed the connection");
  assert_int_equal(waitpid(other.id, &end, 0), other.id);
  finish_other(killer);
  close(other.in);
  assert_int_equal(count_descriptors(false), descriptors);
}

TEST(another_user_is_refused) {
  attune_memory_handle handle;
  if (geteuid() != 0) skip(); /* only root can be another user */
  unsigned char *p = take(100);
  OK(attune_memory_export(&handle, p));
  finish_other(start_other("nobody", &handle, NULL));
  OK(attune_free(p, stream));
  empty();
}

static int connect_raw(const attune_memory_handle *handle) {
  at_ipc_ticket ticket;
  struct sockaddr_un address;
  memcpy(&ticket, handle->base, sizeof ticket);
  const socklen_t length = at_ipc_address(&address, ticket.name);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  assert_true(connection >= 0);
  assert_int_equal(connect(connection, (struct sockaddr *)&address, length), 0);
  return connection;
}

TEST(strange_clients_do_no_harm) {
  enum { CLIENTS = 100 };
  attune_memory_handle handle;
  char byte = 1;
  int clients[CLIENTS];
  unsigned char *p = take(4096);
  *p = 1;
  OK(attune_memory_export(&handle, p));
  const int descriptors = count_descriptors(false);
  for (int i = 0; i < CLIENTS; i++) clients[i] = connect_raw(&handle); /* more than are served at the same time */
  assert_int_equal(send(clients[0], &byte, 1, 0), 1);
  assert_int_equal(recv(clients[0], &byte, 1, 0), 0); /* dropped */
  for (int i = 0; i < CLIENTS; i++) close(clients[i]);
  finish_other(start_other("use", &handle, NULL));
  assert_int_equal(*p, 101);
  assert_descriptors(descriptors);
  OK(attune_free(p, stream));
  empty();
}

int main(int argc, char **argv) {
  if (argc > 1) return other_process(argc, argv);
  return RUN_TESTS_EACH(settle, NULL, open_stream, close_stream);
}
