/* SPDX-License-Identifier: Apache-2.0
 * single_flight.h: the one thread that measures a problem among all threads and processes that share a database, and
 * one at a time on a device among all processes of the user. Others wait while that one lives and renews what it
 * has. */
#ifndef AT_SINGLE_FLIGHT_H
#define AT_SINGLE_FLIGHT_H

#include "src/base/backend.h"
#include "tuning/store/store.h"

typedef struct at_flight {
  at_store *store; /* NULL: none to agree by */
  attune_device *device;
  const char *fingerprint;
  const char *problem;
  int64_t deadline_ns; /* until when it may wait; 0: as long as the other lives */
  bool at_once;        /* do not wait for the problem; and a signal ends the wait for the device */

  int64_t look_ns;    /* at_flight_wait ends then too, to tell that the wait goes on; 0: it does not */
  bool ended;         /* the time to wait is over, or a signal came */
  bool leased;        /* the problem is ours */
  bool measures;      /* the device is ours */
  bool lost;          /* another process had one of the two in between: the measurements are void */
  int64_t renewed_ns; /* when the problem's lease was written last */
  int64_t shown_ns;   /* and the device's */
  int64_t nap_ns;     /* the latest */
} at_flight;

/* One look: OK when the problem is ours now, or nothing can be agreed on (a database that cannot be written); BUSY
 * while another has it. */
attune_status at_flight_claim(at_flight *flight);

/* Sleeps a little longer each time; BUSY when the time to wait is over, with the thread's message as it was. */
attune_status at_flight_wait(void *flight);

/* Renews both leases when it is time for that: cheap to call often. BUSY: one was lost, also at each later call. */
attune_status at_flight_renew(void *flight);

/* The same at once, whenever they were renewed last: before what was measured is used. */
attune_status at_flight_check(at_flight *flight);

/* Gives the problem back. */
void at_flight_end(at_flight *flight);

#endif
