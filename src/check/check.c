/* SPDX-License-Identifier: Apache-2.0
 * check.c: the race check as the program sees it: switched on and off, and informed of the program's own work. */
#include <attune/check.h>

#include "src/check/hooks.h"
#include "src/base/settings.h"

attune_status attune_set_race_check(int on, attune_race_fn fn, void *user) {
  if (!on && (fn || user)) return AT_INVALID("fn or user is not NULL, but on is 0; should be NULL");
  (void)attune_device_count(); /* what the environment asks for comes first */
  const attune_status status = at_check_switch(on != 0, fn, user);
  at_memory_watch();
  return status;
}

int attune_get_race_check(void) {
  (void)attune_device_count();
  return (at_instrumented() & AT_INSTRUMENT_RACES) != 0;
}

static attune_status check_use(const attune_use *use, int i) {
  if ((int)use->access < ATTUNE_READS || use->access > ATTUNE_READS_AND_WRITES)
    return AT_INVALID("uses[%d].access is %d; should be reads (1), writes (2) or both (3)", i, (int)use->access);
  if (!use->pointer && use->bytes > 0)
    return AT_INVALID("uses[%d].pointer is NULL; should point to %zu bytes", i, use->bytes);
  if ((uintptr_t)use->pointer > UINTPTR_MAX - use->bytes || use->bytes > PTRDIFF_MAX)
    return AT_INVALID("uses[%d].bytes is %zu; should be the size of the memory at pointer", i, use->bytes);
  return ATTUNE_OK;
}

attune_status attune_note_use(attune_stream *stream, const char *name, const attune_use *uses, int count) {
  at_operand_access all[AT_INSTRUMENT_USES];
  AT_REQUIRE_AS(name, "describe the work that uses the memory");
  if (count < 0 || count > AT_INSTRUMENT_USES)
    return AT_INVALID("count is %d; should be from 0 to %d", count, AT_INSTRUMENT_USES);
  if (!uses && count > 0) return AT_INVALID("uses is NULL; should point to %d", count);
  for (int i = 0; i < count; i++) {
    AT_TRY(check_use(&uses[i], i));
    all[i] = (at_operand_access){.operand = uses[i].name ? uses[i].name : "",
                        .data = uses[i].pointer,
                        .element = uses[i].bytes,
                        .reads = (uses[i].access & ATTUNE_READS) != 0,
                        .writes = (uses[i].access & ATTUNE_WRITES) != 0};
  }
  if (at_instrumented_races()) at_instrument_use(stream, name, all, count);
  return ATTUNE_OK;
}

attune_status attune_note_wait(attune_stream *stream, attune_stream *other) {
  AT_REQUIRE_AS(other, "be a stream");
  struct at_capture *in = stream ? stream->capture : NULL;
  if (in != other->capture)
    return at_fail(ATTUNE_CAPTURING,
                   "stream and other are not in the same capture; should be in one capture, or in none");
  if (at_instrumented_races()) at_check_wait(stream, other);
  return ATTUNE_OK;
}

uint64_t attune_race_count(void) {
  return at_check_count();
}
