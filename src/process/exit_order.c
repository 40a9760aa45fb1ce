/* SPDX-License-Identifier: Apache-2.0
 * exit_order.c: see exit_order.h. Libraries reach __cxa_atexit (Itanium C++ ABI 3.3.6.3) through an entry of their
 * global offset table, filled in by the loader. attune puts a function of its own there. Only CUDA's libraries get it:
 * no other calls change, nor do those of the program. */
#include "src/process/exit_order.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/base/support.h"
#include "src/process/exit.h"
#include "src/process/fork.h"

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#endif

#if defined(JUMP_SLOT) && defined(__GLIBC__)

extern int __cxa_atexit(void (*fn)(void *), void *arg, void *library);

/* A function of a library's. exit() in another thread may take it before attune's has been registered after it. Then it
 * is registered once more, with attune's after it, by the thread that runs exit(): attune's is called next. Where the
 * library is only unloaded, __cxa_finalize comes back for it at once. */
typedef struct registered {
  void (*fn)(void *arg);
  void *arg, *library;
  bool again;
} registered;

static void call_in_order(void *argument) {
  registered *r = argument;
  void (*fn)(void *arg) = r->fn, *arg = r->arg;
  if (!at_exit_begun() && !r->again) {
    r->again = true;
    if (__cxa_atexit(call_in_order, r, r->library) == 0) {
      at_exit_renew_inside();
      return;
    }
  }
  free(r);
  fn(arg);
}

static int register_both(void (*fn)(void *), void *arg, void *library) {
  registered *r = malloc(sizeof *r);
  if (r) *r = (registered){fn, arg, library, false};
  const int status = r ? __cxa_atexit(call_in_order, r, library) : __cxa_atexit(fn, arg, library);
  if (status != 0) free(r);
  at_exit_renew_inside();
  return status;
}

static bool is_vendor(const char *path) {
  static const char *const names[] = {"libcuda",      "libcublas",  "libcufile", "libnccl",
                                      "libnvJitLink", "libnvidia-", "libnvrtc"};
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  for (size_t i = 0; i < AT_COUNT(names); i++)
    if (strncmp(file, names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* The loader turns the offsets in a library's dynamic section into addresses, unless the section is read-only. */
static uintptr_t address(const struct dl_phdr_info *info, ElfW(Addr) value) {
  return value < info->dlpi_addr ? info->dlpi_addr + value : value;
}

/* An entry that is read-only once the library is loaded (RELRO) is made writable for the store. */
static void put(const struct dl_phdr_info *info, uintptr_t entry) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = entry & ~(page - 1);
  bool fixed = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *h = &info->dlpi_phdr[i];
    const uintptr_t first = (info->dlpi_addr + h->p_vaddr) & ~(page - 1);
    const uintptr_t end = (info->dlpi_addr + h->p_vaddr + h->p_memsz) & ~(page - 1);
    fixed |= h->p_type == PT_GNU_RELRO && entry >= first && entry < end;
  }
  if (fixed && mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n((uintptr_t *)entry, (uintptr_t)register_both, __ATOMIC_RELEASE);
  if (fixed) (void)mprotect((void *)start, page, PROT_READ);
}

static atomic_uint looks;       /* fork generation + 1 of the process one of whose threads looks; 0: none */
static unsigned long long seen; /* number of libraries ever loaded, at the last look */

/* A library that another thread is opening has entries that are still offsets: the loader would undo the change, or
 * add to it. It is looked at again later. */
static void put_relocated(const struct dl_phdr_info *info, uintptr_t entry) {
  uintptr_t bytes = 0; /* of the library: offsets are less, addresses are not */
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const uintptr_t end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_LOAD && end > bytes) bytes = end;
  }
  if (__atomic_load_n((const uintptr_t *)entry, __ATOMIC_ACQUIRE) >= bytes)
    put(info, entry);
  else
    seen = 0;
}

static void hook(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic) {
  const ElfW(Rela) *relocations = NULL;
  const ElfW(Sym) *symbols = NULL;
  const char *strings = NULL;
  size_t bytes = 0;
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    if (dynamic->d_tag == DT_JMPREL) relocations = (const void *)address(info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const void *)address(info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) strings = (const void *)address(info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_PLTRELSZ) bytes = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_PLTREL && dynamic->d_un.d_val != DT_RELA) return;
  }
  if (!relocations || !symbols || !strings) return;
  for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
    const ElfW(Rela) *r = &relocations[i];
    if (ELF64_R_TYPE(r->r_info) != JUMP_SLOT) continue;
    if (strcmp(strings + symbols[ELF64_R_SYM(r->r_info)].st_name, "__cxa_atexit") == 0)
      put_relocated(info, info->dlpi_addr + r->r_offset);
  }
}

static int is_new(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  const bool changed = seen != info->dlpi_adds;
  seen = info->dlpi_adds;
  return changed ? 2 : 1;
}

static int look(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (!is_vendor(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      hook(info, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
  return 0;
}

void at_exit_order_keep(void) {
  const unsigned mine = at_fork_generation() + 1;
  while (atomic_exchange(&looks, mine) == mine) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  if (dl_iterate_phdr(is_new, NULL) == 2) (void)dl_iterate_phdr(look, NULL);
  atomic_store(&looks, 0);
}

#else

void at_exit_order_keep(void) {}

#endif
