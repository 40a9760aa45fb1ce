/* SPDX-License-Identifier: Apache-2.0
 * registry.h: implementations, configurations and plans. An implementation is one static at_implementation; the ops'
 * table files list them all. `problem` is the op's normalised problem. */
#ifndef AT_REGISTRY_H
#define AT_REGISTRY_H

#include "src/base/backend.h"
#include "tuning/op/op.h"

#define AT_CONFIGURATION_CHARS 192

/* The tunables of an implementation as text, "tile=128x128,stages=4"; "" when it has none. The first names the
 * algorithm or path; "threads" is the number of CPU threads, which a search counts as a cost. */
typedef struct at_configuration {
  char text[AT_CONFIGURATION_CHARS];
} at_configuration;

struct attune_plan;
typedef attune_status (*at_launch_fn)(const struct attune_plan *plan, const void *operands, attune_stream *stream);

/* Each slot gets its implementation: as `self`, or as plan->implementation. */
typedef struct at_implementation at_implementation;
struct at_implementation {
  const char *name;
  int version;         /* raise it when the same configuration means other code: stored winners become misses */
  const char *backend; /* "host", "cuda" */
  bool fallback;       /* plain and slow: raced only where nothing else can do the problem */
  const struct at_tunables *tunables; /* what its configurations consist of; NULL: its functions alone know */
  const void *data;                   /* what functions that several share have to know of this one; NULL: nothing */
  /* May this problem, its contract included, run here? Cheap, no allocation. */
  bool (*supports)(const at_implementation *self, const void *problem, attune_device *device);
  /* Up to `max` configurations into out, best guess first; the count. At least one for a supported problem. */
  int (*configurations)(const at_implementation *self, const void *problem, attune_device *device,
                        at_configuration *out, int max);
  /* Optional: the configuration to run, in place of the default, where nothing is known of the problem: by a fixed
   * rule of what was measured. True only where no library came near it on any machine that was tried. NULL: never. */
  bool (*untuned)(const at_implementation *self, const void *problem, attune_device *device, at_configuration *out);
  /* Optional: more of them around a good one. NULL: configurations() gives all. */
  int (*neighbours)(const at_implementation *self, const void *problem, attune_device *device,
                    const at_configuration *leader, at_configuration *out, int max);
  /* Makes plan->state from plan->problem, device and configuration, and sets plan->workspace_bytes. A configuration
   * that this machine's library does not have, or text it cannot read, is NOT_FOUND: a miss. Not in capture unless it
   * touches no device. */
  attune_status (*prepare)(struct attune_plan *plan);
  /* Optional: makes what `count` configurations need before each of them is prepared, all at once: kernels compiled by
   * at_jit_get_all, which the cache of kernels keeps. A search calls it so, where it would wait for them one by one
   * otherwise. What fails here fails in prepare too, which says why. */
  void (*prepare_many)(const at_implementation *self, const void *problem, attune_device *device,
                       const at_configuration *configurations, int count);
  /* Optional, of what has kernels that are compiled at run time: puts those of the configuration into the kernel cache
   * unless they are there (at_jit_compile); loads nothing, and neither waits for the device nor gives it work, so that
   * it runs in parallel with measurements. *made: something was compiled now. `made` NULL: nothing is compiled, and
   * NOT_FOUND says that prepare would have to. NULL: prepare is quick. Any thread, several at once. */
  attune_status (*compile)(const at_implementation *self, const void *problem, attune_device *device,
                           const at_configuration *configuration, bool *made);
  /* Launches; allocates nothing, waits for nothing. `operands` are normalised as the problem is. Any thread. */
  at_launch_fn launch; /* in the stream's order, captures too: on the host by at_host_submit (src/host/host.h) */
  /* Optional: calls of the vendor's library just as a program makes them, inline, with the library's own threads and
   * nothing of attune around them; what the default's time is where it is the default. Then the default's name with
   * what its time depends on, "host_cblas threads=2", and how many threads such a call may have at work: more than
   * attune's own calls where a quota bounds these and the library does not look at it. bare_threads NULL: those
   * of the configuration. */
  attune_status (*bare)(const struct attune_plan *plan, const at_bare_calls *calls);
  void (*bare_name)(const struct attune_plan *plan, char *out, size_t size);
  int (*bare_threads)(const struct attune_plan *plan);
  void (*destroy)(struct attune_plan *plan); /* optional: frees what prepare made */
  /* Optional: what its code depends on besides the device and `version`: the libraries it calls, the compiler that
   * makes its kernels, the CPU features it was chosen by. Words "NAME-VERSION" into out, with blanks between and no '-'
   * in a name: "cublaslt-130100 nvrtc-13.0"; the version of what is not here is "none". What the configuration uses
   * (NULL: all that any configuration may use). False: it does not fit. NULL: it depends on nothing. A stored winner
   * holds only where each of them has the version that it was measured with. May open libraries. Any thread. */
  bool (*depends)(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                  char *out, size_t size);
};

/* A candidate prepared for one problem on one device. Immutable once prepared. */
typedef struct attune_plan at_plan;
struct attune_plan {
  at_launch_fn launch; /* = implementation->launch, first for speed */
  attune_device *device;
  void *state;                    /* the implementation's */
  uintptr_t spans[AT_PLAN_SPANS]; /* of at_operand_type.spans */
  const at_implementation *implementation;
  const at_op *op;
  size_t workspace_bytes;
  int caller_flags;                 /* the op's, for plans handed to callers */
  const attune_device *plain;       /* likewise, set by the op: `device` if a run needs no more than the op's quick
                                       checks; NULL: it takes the long way */
  const struct attune_plan *origin; /* likewise, what a run launches: what is queued or captured on the host keeps a
                                       pointer to it, while the caller may destroy this plan at any time, so there it is
                                       the plan table's, which lives as long as the tuner; else this plan itself */
  uint16_t caller_hint;             /* likewise: where a thread keeps its hint (call_cache.h) */
  bool borrowed;                    /* handed to a caller: state belongs to the plan table's plan */
  uint64_t id;                      /* likewise: a number that never comes again, so that its runs are counted */
  struct at_counted_plan *counted;  /* beyond the plan table's bound: it goes with its last use; NULL: the table's */
  struct attune_plan *next_retired; /* the table's */
  /* Before the plan is destroyed: what was put around it goes (guard.h, plan_lru.h); NULL: nothing was. */
  void (*release)(struct attune_plan *plan);
  uint64_t tuner; /* for plans handed to callers: its id, and the plan table's entry */
  const struct at_plan_entry *entry;
  void *own; /* the op's, of a plan handed to a caller, with what releases it; NULL: nothing */
  void (*own_release)(void *own);
  struct at_guard *guard; /* watches a team on the host; NULL: none (guard.h) */
  /* Of at_problem_bytes, zeros up to the end of the last word. It lies with the state: copies of a plan share both. */
  const uint64_t *problem;
  at_configuration configuration;
};

/* Of the device's backend, not left out, and for this problem. */
bool at_registry_usable(const at_implementation *implementation, const void *problem, attune_device *device);

/* Leaves implementations out by their names, "a,b", in all of the process from now on; "" none. INVALID_ARGUMENT names
 * the one that none of the ops has; `source` is where the names are from. */
attune_status at_registry_skip(const char *names, const char *source, const at_op *const *ops, int op_count);
/* As set; "" where nothing is. Borrowed for ever. *out_set: the program or the environment did it, if only to "". */
const char *at_registry_skipped(bool *out_set);

/* The vendor default for the problem on the device: the first implementation of the table that supports it, first
 * configuration. NULL: none can do it. */
const at_implementation *at_registry_default(const at_op *op, const void *problem, attune_device *device);

/* UNSUPPORTED, for there is none: with what is wrong with a library of the op's, if something is. `problem` is its
 * text. */
attune_status at_registry_fail(const at_op *op, const char *problem, attune_device *device);

/* The implementation called `name` of the device's backend; NULL: none. */
const at_implementation *at_registry_find(const at_op *op, const char *name, const attune_device *device);

/* A new prepared plan into *out; at_plan_destroy releases it. UNSUPPORTED, NOT_FOUND (configuration), or what prepare
 * says. */
attune_status at_plan_create(at_plan **out, const at_op *op, const at_implementation *implementation,
                             const at_configuration *configuration, const void *problem, attune_device *device);
void at_plan_destroy(at_plan *plan);

/* configuration.c: the slot `configurations` of an implementation without tunables, whose one configuration is "", and
 * the check in its `prepare`: NOT_FOUND for another one. */
int at_configurations_none(const at_implementation *self, const void *problem, attune_device *device,
                           at_configuration *out, int max);
attune_status at_configuration_check_none(const at_plan *plan);

/* configuration.c: "key=value,key=value" text. get returns false when the key is absent or no integer. */
bool at_configuration_get(const at_configuration *configuration, const char *key, int64_t *out);
bool at_configuration_get_text(const at_configuration *configuration, const char *key, char *out, size_t size);
/* Appends ",key=value" (no comma when empty); false when it does not fit. */
bool at_configuration_put_text(at_configuration *configuration, const char *key, const char *value);

#endif
