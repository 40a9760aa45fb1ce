/* SPDX-License-Identifier: Apache-2.0
 * kernel_compile.c: NVRTC: architectures, options, compilation and its errors. */
#include "src/cuda/jit/kernel_compile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/cuda/library/toolkit.h"
#include "src/process/vendor.h"

#define STANDARD "--std=c++17"
#define ARCHITECTURES_MAX 128
#define OPTIONS_MAX 64
#define SUFFIX_SINCE 90 /* devices from here on have instructions that only the architecture with an "a" has */

static char compiler[128];
static pthread_once_t compiler_once = PTHREAD_ONCE_INIT;

/* Updates of one release have one version number; the size of the library's file tells them apart. */
static void describe_compiler(void) {
  int major = 0, minor = 0;
  char path[AT_LIBRARY_PATH];
  struct stat file = {.st_size = 0};
  size_t at = 0;
  if (at_nvrtc_open() != ATTUNE_OK) {
    (void)at_append(compiler, sizeof compiler, &at, "none");
    return;
  }
  (void)at_nvrtc.nvrtcVersion(&major, &minor);
  at_library_of((const void *)(uintptr_t)at_nvrtc.nvrtcVersion, path, sizeof path);
  (void)stat(path, &file);
  (void)at_append(compiler, sizeof compiler, &at, "nvrtc %d.%d %lld " STANDARD, major, minor, (long long)file.st_size);
}

const char *at_kernel_compiler(void) {
  pthread_once(&compiler_once, describe_compiler);
  return compiler;
}

static int known_architectures(int out[ARCHITECTURES_MAX]) {
  int count = 0;
  if (at_nvrtc_open() != ATTUNE_OK || !at_vendor_enter(AT_VENDOR_LIBRARY)) return 0;
  const bool told = at_nvrtc.nvrtcGetNumSupportedArchs(&count) == NVRTC_SUCCESS && count <= ARCHITECTURES_MAX &&
                    at_nvrtc.nvrtcGetSupportedArchs(out) == NVRTC_SUCCESS;
  at_vendor_leave();
  return told ? count : 0;
}

int at_architectures_known(int *out, int most) {
  int known[ARCHITECTURES_MAX];
  const int count = known_architectures(known);
  for (int i = 0; i < count && i < most; i++) out[i] = known[i];
  return count;
}

/* Machine code where the compiler knows the device, and PTX of the newest architecture that the device understands. */
int at_architectures(at_architecture out[2], int capability) {
  int known[ARCHITECTURES_MAX], newest = 0, made = 0;
  const int count = known_architectures(known);
  for (int i = 0; i < count; i++)
    if (known[i] <= capability && known[i] > newest) newest = known[i];
  size_t at = 0;
  if (newest == capability)
    (void)at_append(out[made++].name, AT_ARCHITECTURE_CHARS, &at, "sm_%d%s", capability,
                    capability >= SUFFIX_SINCE ? "a" : "");
  at = 0;
  if (newest > 0) (void)at_append(out[made++].name, AT_ARCHITECTURE_CHARS, &at, "compute_%d", newest);
  return made;
}

static bool is_ptx(const at_architecture *architecture) {
  return strncmp(architecture->name, "compute_", 8) == 0;
}

static char *log_of(nvrtcProgram program) {
  size_t size = 0;
  if (at_nvrtc.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size == 0) return NULL;
  char *log = calloc(1, size + 1);
  if (log && at_nvrtc.nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) log[0] = '\0';
  return log;
}

static attune_status status_of(nvrtcResult result) {
  return result == NVRTC_ERROR_INVALID_OPTION  ? ATTUNE_UNSUPPORTED
         : result == NVRTC_ERROR_OUT_OF_MEMORY ? ATTUNE_OUT_OF_MEMORY
                                               : ATTUNE_INTERNAL;
}

/* Where the first error's line begins; else the log's start. */
static const char *first_error(const char *log) {
  const char *error = strstr(log, "error");
  while (error && error > log && error[-1] != '\n') error--;
  return error ? error : log;
}

static attune_status fail_foreign(nvrtcProgram program, nvrtcResult result, const at_kernel_source *source,
                                  const at_architecture *architecture) {
  char *log = log_of(program);
  const bool told = log && log[0];
  if (told && source->logged)
    at_log(ATTUNE_LOG_WARNING, "a program's kernel does not compile for %s:\n%s", architecture->name, log);
  const attune_status status = at_fail(result == NVRTC_ERROR_COMPILATION ? ATTUNE_INVALID_ARGUMENT : status_of(result),
                                       "the source does not compile for %s: %.400s", architecture->name,
                                       told ? first_error(log) : at_nvrtc.nvrtcGetErrorString(result));
  free(log);
  return status;
}

/* The log's first line with an error, or its first line. */
static attune_status fail_compile(nvrtcProgram program, nvrtcResult result, const at_kernel_source *source,
                                  const at_architecture *architecture) {
  if (source->foreign) return fail_foreign(program, result, source, architecture);
  char *log = log_of(program), *save = NULL;
  const char *first = NULL, *error = NULL;
  for (char *line = log ? strtok_r(log, "\n", &save) : NULL; line && !error; line = strtok_r(NULL, "\n", &save)) {
    if (!first) first = line;
    if (strstr(line, "error")) error = line;
  }
  const attune_status status = status_of(result);
  (void)at_fail(status, "%s of %s does not compile for %s: %.300s", source->entry, source->file, architecture->name,
                error   ? error
                : first ? first
                        : at_nvrtc.nvrtcGetErrorString(result));
  free(log);
  return status;
}

static nvrtcResult compile(nvrtcProgram program, const at_kernel_source *source, const at_architecture *architecture,
                           bool verbose) {
  const char *options[OPTIONS_MAX];
  char target[sizeof "--gpu-architecture=" + AT_ARCHITECTURE_CHARS] = "";
  size_t at = 0;
  int count = 0;
  (void)at_append(target, sizeof target, &at, "--gpu-architecture=%s", architecture->name);
  options[count++] = target;
  options[count++] = STANDARD;
  if (source->foreign) {
    options[count++] = "--device-as-default-execution-space";
    options[count++] = "--disable-warnings";
  }
  if (verbose) options[count++] = "--ptxas-options=-v";
  for (const char *const *macro = source->macros; macro && *macro; macro++) {
    if (count + 2 > OPTIONS_MAX) return NVRTC_ERROR_INVALID_INPUT;
    options[count++] = "-D";
    options[count++] = *macro;
  }
  return at_nvrtc.nvrtcCompileProgram(program, count, options);
}

static nvrtcResult take_code(at_kernel_code *out, nvrtcProgram program, bool ptx) {
  size_t size = 0;
  nvrtcResult result = ptx ? at_nvrtc.nvrtcGetPTXSize(program, &size) : at_nvrtc.nvrtcGetCUBINSize(program, &size);
  if (result != NVRTC_SUCCESS) return result;
  if (size == 0) return NVRTC_ERROR_COMPILATION;
  char *bytes = malloc(size);
  if (!bytes) return NVRTC_ERROR_OUT_OF_MEMORY;
  result = ptx ? at_nvrtc.nvrtcGetPTX(program, bytes) : at_nvrtc.nvrtcGetCUBIN(program, bytes);
  if (result != NVRTC_SUCCESS) {
    free(bytes);
    return result;
  }
  *out = (at_kernel_code){bytes, size};
  return NVRTC_SUCCESS;
}

static attune_status compile_inside(at_kernel_code *out, const at_kernel_source *source,
                                    const at_architecture *architecture, char **report) {
  nvrtcProgram program = NULL;
  nvrtcResult result = at_nvrtc.nvrtcCreateProgram(&program, source->text, source->file, 0, NULL, NULL);
  if (result != NVRTC_SUCCESS)
    return at_fail(ATTUNE_INTERNAL, "%s: nvrtcCreateProgram: %s", source->file, at_nvrtc.nvrtcGetErrorString(result));
  const bool ptx = is_ptx(architecture);
  result = compile(program, source, architecture, report && !ptx);
  if (result == NVRTC_SUCCESS) result = take_code(out, program, ptx);
  const attune_status status =
      result == NVRTC_SUCCESS ? ATTUNE_OK : fail_compile(program, result, source, architecture);
  if (status == ATTUNE_OK && report && !ptx) *report = log_of(program);
  (void)at_nvrtc.nvrtcDestroyProgram(&program);
  return status;
}

attune_status at_kernel_compile(at_kernel_code *out, const at_kernel_source *source,
                                const at_architecture *architecture, char **report) {
  *out = (at_kernel_code){NULL, 0};
  if (report) *report = NULL;
  const attune_status open = at_nvrtc_open();
  if (open != ATTUNE_OK) return open;
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return at_vendor_refuse();
  const attune_status status = compile_inside(out, source, architecture, report);
  at_vendor_leave();
  return status;
}

void at_kernel_code_free(at_kernel_code *code) {
  free(code->bytes);
  *code = (at_kernel_code){NULL, 0};
}
