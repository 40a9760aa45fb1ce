/* SPDX-License-Identifier: Apache-2.0
 * options.h: how an allocator works: the keys of ATTUNE_ALLOC. */
#ifndef AT_MEMORY_OPTIONS_H
#define AT_MEMORY_OPTIONS_H

#include "src/base/support.h"

#define AT_MIB ((size_t)1 << 20)

typedef struct at_memory_options {
  size_t
      max_split; /* blocks of this size and more are oversize: not split, and kept for requests of about their size */
  size_t max_non_split_rounding; /* how much larger than the request an oversize block may be */
  size_t large_segment;          /* what is asked of the device for requests of 1 to 10 MiB */
  unsigned char divisions[48]; /* [i]: for sizes of [2^i, 2^(i+1)) bytes round up to a 1/n of 2^i; 0 and 1: multiples of
                                  512 bytes only */
  bool any_division;
  double collect_above; /* fraction of the limit from which cached memory is given back by age; 0: never */
  double fraction;      /* of the device's memory that may be taken; 0: all */
  bool expandable, no_cache, poison;
  bool async; /* requests go to the driver's stream-ordered allocator; then no_cache is false */
  bool nvtx;  /* tools track blocks; segments are plain ones then, as tools know them */
  /* Of pinned memory. */
  bool pin_register;     /* it is memory of the process, pinned where it is */
  int pin_threads;       /* that touch it first, 1 or more */
  size_t pin_segment;    /* taken at the first request; small ones are cut from it. 0: none */
  size_t pin_most_kept;  /* larger blocks are not cached */
  size_t pin_most_round; /* larger requests are rounded to pages, not to a power of two */
} at_memory_options;

void at_memory_options_default(at_memory_options *out);

/* Sets the keys in `text`, "key:value,key:value"; INVALID_ARGUMENT names the key or the value that is wrong, and
 * `name`, where the text is from; *out is then as before. */
attune_status at_memory_options_parse(at_memory_options *out, const char *text, const char *name);

/* The i-th key; NULL: there are no more. */
const char *at_memory_options_key(size_t i);

/* Logs, once in a process, each key that was accepted and changes nothing. Without a lock. */
void at_memory_options_tell(void);

#endif
