/* SPDX-License-Identifier: Apache-2.0
 * test_cufile.c: files by cuFile: when it is used, what comes of its errors, and of none. Each way is a process of its
 * own with a made libcufile.so.0, fake_cufile.c, and host devices that count as its. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/host_devices.h"

enum { BYTES = 200000 };

static char path[64];
static char content[BYTES], memory[BYTES];

static const char *told(void) {
  void *library = dlopen("libcufile.so.0", RTLD_NOW | RTLD_NOLOAD);
  const char *log = library ? dlsym(library, "fake_cufile_log") : "";
  if (library) dlclose(library);
  return log;
}

static int prepare(void) {
  if (host_devices_begin() != 0) return 1;
  for (int i = 0; i < HOST_DEVICES; i++) {
    host_devices[i].backend.kind = ATTUNE_DEVICE_CUDA;
    host_devices[i].backend.cufile = true;
  }
  for (int i = 0; i < BYTES; i++) content[i] = (char)(i * 31 + i / 251);
  snprintf(path, sizeof path, "/tmp/attune-cufile-XXXXXX");
  const int to = mkstemp(path);
  if (to < 0 || write(to, content, BYTES) != BYTES) return 1;
  close(to);
  return 0;
}

static attune_status open_with(attune_file **out, attune_file_way way, int direct) {
  return attune_file_open(out, path, &(attune_file_options){.write = 1, .direct = direct, .way = way});
}

static int used(const char *reads) {
  attune_file *file = NULL;
  size_t moved = 0;
  GOOD(attune_file_register_memory(devices[0], content, 4096)); /* before any file */
  EXPECT(strstr(told(), "memory 4096 0 "), "%s", told());
  GOOD(open_with(&file, ATTUNE_FILE_CUFILE, 0));
  GOOD(attune_file_forget_memory(devices[0], content));
  EXPECT(strcmp(attune_file_describe(file), "cufile") == 0, "%s", attune_file_describe(file));
  GOOD(attune_file_load(file, streams[0], memory, BYTES - 5, 5, &moved));
  EXPECT(moved == BYTES - 5 && memcmp(memory, content + 5, moved) == 0, "load");
  EXPECT(strstr(told(), reads), "%s", told());
  GOOD(attune_file_save(file, streams[0], content + 100, 1000, 7, &moved));
  EXPECT(moved == 1000 && strstr(told(), "write "), "%s", told());
  GOOD(attune_file_load(file, streams[0], memory, 1000, 7, NULL));
  EXPECT(memcmp(memory, content + 100, 1000) == 0, "save");
  BAD(attune_file_load(file, streams[0], memory, 1000, BYTES - 10, &moved), ATTUNE_IO_ERROR,
      "the file ends at byte 200000");
  EXPECT(moved == 10, "%zu", moved);
  GOOD(attune_file_register_memory(devices[0], memory, BYTES));
  GOOD(attune_file_forget_memory(devices[0], memory));
  EXPECT(strstr(told(), "memory 200000 0 ") && strstr(told(), "drop "), "%s", told());
  const pid_t child = fork();
  if (child == 0) {
    const attune_status status = attune_file_load(file, streams[0], memory, 10, 0, NULL);
    attune_file_close(file);
    _exit(status == ATTUNE_DEVICE_ERROR && !strstr(told(), "forget") ? 0 : 1);
  }
  int ended = 1;
  EXPECT(waitpid(child, &ended, 0) == child && ended == 0, "in a child");
  attune_file_close(file);
  EXPECT(strstr(told(), "forget"), "%s", told());
  return 0;
}

/* By itself only for direct files, and only where its driver is. */
static int chosen(bool driver) {
  attune_file *file = NULL;
  const int direct = open(path, O_RDONLY | O_DIRECT);
  GOOD(open_with(&file, ATTUNE_FILE_ANY, 0));
  EXPECT(strcmp(attune_file_describe(file), "copies") == 0 && !*told(), "%s %s", attune_file_describe(file), told());
  attune_file_close(file);
  GOOD(open_with(&file, ATTUNE_FILE_ANY, 1));
  const char *right = direct < 0 ? "copies" : driver ? "cufile" : "copies, direct";
  EXPECT(strcmp(attune_file_describe(file), right) == 0, "%s, not %s", attune_file_describe(file), right);
  GOOD(attune_file_load(file, streams[0], memory, BYTES, 0, NULL));
  attune_file_close(file);
  GOOD(open_with(&file, ATTUNE_FILE_COPIES, 1));
  EXPECT(strncmp(attune_file_describe(file), "copies", 6) == 0, "%s", attune_file_describe(file));
  attune_file_close(file);
  if (direct >= 0) close(direct);
  GOOD(host_devices_wait());
  EXPECT(memcmp(memory, content, BYTES) == 0, "load");
  return 0;
}

static int failing(const char *words, attune_status status) {
  attune_file *file = NULL;
  size_t moved = 1;
  setenv("FAKE_CUFILE", "", 1);
  GOOD(open_with(&file, ATTUNE_FILE_CUFILE, 0));
  setenv("FAKE_CUFILE", status == ATTUNE_IO_ERROR ? "failing" : "strange", 1);
  BAD(attune_file_load(file, streams[0], memory, 100, 0, &moved), status, words);
  BAD(attune_file_save(file, streams[0], memory, 100, 0, &moved), status, words);
  EXPECT(moved == 0, "%zu", moved);
  if (status == ATTUNE_DEVICE_ERROR)
    BAD(attune_file_register_memory(devices[0], memory, BYTES), ATTUNE_DEVICE_ERROR, "cuFileBufRegister failed");
  attune_file_close(file);
  return 0;
}

/* A write that fails late is reported, and ends no process. */
static int stuck(void) {
  attune_file *file = NULL;
  struct rlimit limit;
  size_t moved = 1;
  GOOD(open_with(&file, ATTUNE_FILE_CUFILE, 0));
  BAD(attune_file_save(file, streams[0], memory, 100, 0, &moved), ATTUNE_IO_ERROR,
      "Input/output error, after 0 of 100");
  setenv("FAKE_CUFILE", "", 1);
  EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
  limit.rlim_cur = 1000;
  EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  BAD(attune_file_save(file, streams[0], memory, 100, 2000, &moved), ATTUNE_IO_ERROR, "File too large");
  EXPECT(moved == 0, "%zu", moved);
  attune_file_close(file);
  return 0;
}

/* A file that cannot be opened so is neither emptied nor, where cuFile is not here at all, made. */
static int absent(const char *words) {
  attune_file *file = NULL;
  struct stat found;
  const attune_file_options options = {.write = 1, .create = 1, .truncate = 1, .direct = 1, .way = ATTUNE_FILE_CUFILE};
  BAD(attune_file_open(&file, path, &options), ATTUNE_UNSUPPORTED, words);
  EXPECT(!file && stat(path, &found) == 0 && found.st_size == BYTES, "emptied");
  if (!strstr(words, "HandleRegister")) {
    BAD(attune_file_open(&file, "attune-cufile-none", &options), ATTUNE_UNSUPPORTED, words);
    EXPECT(stat("attune-cufile-none", &found) != 0, "made");
  }
  return chosen(false);
}

static int as_child(const char *name) {
  if (prepare() != 0) return 1;
  const int ended = strcmp(name, "used") == 0       ? used("read ")
                    : strcmp(name, "short") == 0    ? used("read read read read ")
                    : strcmp(name, "stuck") == 0    ? stuck()
                    : strcmp(name, "chosen") == 0   ? chosen(true)
                    : strcmp(name, "nodriver") == 0 ? chosen(false)
                    : strcmp(name, "failing") == 0  ? failing("Input/output error", ATTUNE_IO_ERROR)
                    : strcmp(name, "strange") == 0  ? failing("failed with error 5011", ATTUNE_DEVICE_ERROR)
                                                    : absent(name);
  unlink(path);
  host_devices_end();
  return ended;
}

/* ---- in the test ---- */

static void run(const char *folder, const char *mode, const char *name) {
  char libraries[1024];
  snprintf(libraries, sizeof libraries, "%s/%s", FAKES, folder);
  setenv("LD_LIBRARY_PATH", libraries, 1);
  setenv("FAKE_CUFILE", mode, 1);
  assert_int_equal(run_part(name), 0);
}

TEST(bytes_by_cufile) {
  run("cufile", "", "used");
  run("cufile", "short", "short");
  run("cufile", "interrupted", "used");
}

TEST(when_it_is_used) {
  run("cufile", "", "chosen");
  run("cufile", "nodriver", "nodriver");
}

TEST(its_errors) {
  run("cufile", "", "failing");
  run("cufile", "", "strange");
  run("cufile", "stuck", "stuck");
  run("cufile", "broken", "cuFileDriverOpen failed with error 5001");
  run("cufile", "picky", "cuFileHandleRegister failed with error 5027");
  void *real = dlopen("libcufile.so.0", RTLD_LAZY);
  if (real)
    dlclose(real);
  else
    run("nowhere", "", "libcufile.so.0 was not found");
}

int main(int argc, char **argv) {
  if (argc > 1) return as_child(argv[1]);
  return RUN_TESTS(NULL, NULL);
}
