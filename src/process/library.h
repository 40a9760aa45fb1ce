/* SPDX-License-Identifier: Apache-2.0
 * library.h: shared libraries opened at run time. One that the program has loaded already comes first: two copies of a
 * library in one process have two sets of handles, threads and settings. */
#ifndef AT_LIBRARY_H
#define AT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define AT_LIBRARY_PATH 512

/* A library that is open. It is never closed: what was found in it is used for the life of the process. */
typedef struct at_library {
  void *handle;               /* NULL: not open */
  char path[AT_LIBRARY_PATH]; /* the file, as the loader names it */
  bool was_loaded;            /* the program had loaded it before attune asked */
} at_library;

/* True in a program that was linked with -static: in one the C library's dlopen crashes or brings a second C library
 * along, so nothing is opened, here or elsewhere. The first call that finds so says it in the log. */
bool at_library_none(void);

/* Opens `file`, by the loader's own rules when it is no path. `flags` as dlopen's. False, with `out` empty: not
 * here. */
bool at_library_open(at_library *out, const char *file, int flags);

/* Opens what is loaded already, in the order of loading: the first library whose file's name (without its folder) is
 * `named`, and which is `good` (NULL: any). False, with `out` empty: there is none. */
bool at_library_open_loaded(at_library *out, bool (*named)(const char *file),
                            bool (*good)(const at_library *library, void *user), void *user);

/* Gives up one that is not used after all. */
void at_library_close(at_library *library);

/* The function `name` into *function_out, a pointer to a function pointer; false, with NULL there: it has none. */
bool at_library_function(const at_library *library, const char *name, void *function_out);

/* The file that `function` lies in, into out[size]; "" when the loader does not know. */
void at_library_of(const void *function, char *out, size_t size);

/* A function of a table, and where its pointer goes in the table's structure. */
typedef struct at_library_entry {
  const char *name;
  size_t offset;
} at_library_entry;

/* Fills all of `table`. NULL when every function was found, else the name of the first that is missing. */
const char *at_library_fill(const at_library *library, void *table, const at_library_entry *entries, size_t count);

#endif
