/* SPDX-License-Identifier: Apache-2.0
 * cufile.c: see cufile.h. */
#include "src/file/cufile.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "src/process/library.h"
#include "src/process/loading.h"
#include "src/process/vendor.h"

enum { DESCRIPTOR = 1 };

typedef struct cufile_error {
  int error, driver_error;
} cufile_error;
typedef struct cufile_file {
  int type;
  union {
    int descriptor;
    void *other;
  } of;
  const void *operations;
} cufile_file;
typedef struct cufile_properties {
  unsigned int driver_major; /* 0: it is not there */
  unsigned char rest[508];
} cufile_properties;

static struct cufile {
  cufile_error (*DriverOpen)(void);
  cufile_error (*DriverGetProperties)(cufile_properties *out);
  cufile_error (*HandleRegister)(void **out, cufile_file *file);
  void (*HandleDeregister)(void *handle);
  cufile_error (*BufRegister)(const void *memory, size_t bytes, int flags);
  cufile_error (*BufDeregister)(const void *memory);
  ssize_t (*Read)(void *handle, void *memory, size_t bytes, off_t offset, off_t within);
  ssize_t (*Write)(void *handle, const void *memory, size_t bytes, off_t offset, off_t within);
} cufile; /* constant after cufile_once, as all below */
static pthread_once_t cufile_once = PTHREAD_ONCE_INIT;
static atomic_bool is_open;
static bool has_driver;
static char why[256]; /* "" when it is open */

static bool is_cufile(const char *file) {
  return strncmp(file, "libcufile.so", 12) == 0;
}

static const char *fill(const at_library *library) {
#define ENTRY(name) \
  { "cuFile" #name, offsetof(struct cufile, name) }
  static const at_library_entry entries[] = {
      ENTRY(DriverOpen),  ENTRY(DriverGetProperties), ENTRY(HandleRegister), ENTRY(HandleDeregister),
      ENTRY(BufRegister), ENTRY(BufDeregister),       ENTRY(Read),           ENTRY(Write)};
#undef ENTRY
  return at_library_fill(library, &cufile, entries, AT_COUNT(entries));
}

static void look(const at_library *library) {
  size_t at = 0;
  cufile_properties properties = {0};
  const char *missing = fill(library);
  if (missing) {
    (void)at_append(why, sizeof why, &at, "%.160s has no %s", library->path, missing);
    return;
  }
  const cufile_error error = cufile.DriverOpen();
  if (error.error != 0) {
    (void)at_append(why, sizeof why, &at, "cuFileDriverOpen failed with error %d", error.error);
    return;
  }
  has_driver = cufile.DriverGetProperties(&properties).error == 0 && properties.driver_major > 0;
  atomic_store(&is_open, true);
}

static void open_cufile(void) {
  at_library library;
  if (!at_loading_begin())
    (void)at_copy_text(why, sizeof why, "the process is exiting, or was forked while libraries were being opened");
  else if (at_library_open_loaded(&library, is_cufile, NULL, NULL) ||
           at_library_open(&library, "libcufile.so.0", RTLD_NOW | RTLD_LOCAL))
    look(&library), at_vendor_opened();
  else
    (void)at_copy_text(why, sizeof why, "libcufile.so.0 was not found; install GPUDirect Storage (libcufile)");
  at_loading_end();
}

attune_status at_cufile_open(void) {
  pthread_once(&cufile_once, open_cufile);
  return why[0] ? at_fail(ATTUNE_UNSUPPORTED, "no cuFile: %s", why) : ATTUNE_OK;
}

bool at_cufile_has_driver(void) {
  return at_cufile_is_open() && has_driver;
}

bool at_cufile_is_open(void) {
  return atomic_load(&is_open);
}

static attune_status check(cufile_error error, const char *what) {
  if (error.error == 0) return ATTUNE_OK;
  return at_fail(ATTUNE_DEVICE_ERROR, "%s failed with error %d (CUDA's %d)", what, error.error, error.driver_error);
}

attune_status at_cufile_register(void **out, int descriptor) {
  cufile_file file = {.type = DESCRIPTOR, .of.descriptor = descriptor};
  *out = NULL;
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return at_vendor_refuse();
  const cufile_error error = cufile.HandleRegister(out, &file);
  at_vendor_leave();
  if (error.error == 0) return ATTUNE_OK;
  return at_fail(ATTUNE_UNSUPPORTED, "cuFile does not accept the file: cuFileHandleRegister failed with error %d",
                 error.error);
}

void at_cufile_forget(void *handle) {
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return;
  cufile.HandleDeregister(handle);
  at_vendor_leave();
}

attune_status at_cufile_register_memory(void *pointer, size_t bytes) {
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return at_vendor_refuse();
  const cufile_error error = cufile.BufRegister(pointer, bytes, 0);
  at_vendor_leave();
  return check(error, "cuFileBufRegister");
}

attune_status at_cufile_forget_memory(void *pointer) {
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return at_vendor_refuse();
  const cufile_error error = cufile.BufDeregister(pointer);
  at_vendor_leave();
  return check(error, "cuFileBufDeregister");
}

/* Below -1: one of cuFile's own errors. */
static ssize_t judge(ssize_t moved, int error, int *out_error) {
  *out_error = 0;
  if (moved >= 0) return moved;
  if (moved == -1)
    *out_error = error ? error : EIO;
  else
    (void)at_fail(ATTUNE_DEVICE_ERROR, "cuFile failed with error %zd", -moved);
  return -1;
}

static ssize_t refused(int *out_error) {
  *out_error = 0;
  (void)at_vendor_refuse();
  return -1;
}

ssize_t at_cufile_read(void *handle, void *memory, size_t bytes, off_t offset, int *out_error) {
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return refused(out_error);
  errno = 0;
  const ssize_t moved = cufile.Read(handle, memory, bytes, offset, 0);
  const int error = errno;
  at_vendor_leave();
  return judge(moved, error, out_error);
}

ssize_t at_cufile_write(void *handle, const void *memory, size_t bytes, off_t offset, int *out_error) {
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return refused(out_error);
  errno = 0;
  const ssize_t moved = cufile.Write(handle, memory, bytes, offset, 0);
  const int error = errno;
  at_vendor_leave();
  return judge(moved, error, out_error);
}
