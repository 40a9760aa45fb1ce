/* SPDX-License-Identifier: Apache-2.0
 * single_flight.c: claims, waits, renewals. Who waits looks seldom, so that it does not disturb what is measured. */
#include "tuning/single_flight.h"

#include <errno.h>
#include <time.h>

enum { LEASE_MS = 60000 };
static const int64_t RENEW_NS = (int64_t)LEASE_MS * 1000000 / 3;
static const int64_t NAP_FIRST_NS = 1000000, NAP_MOST_NS = 10000000;

attune_status at_flight_claim(at_flight *flight) {
  if (!flight->store) return ATTUNE_OK;
  const attune_status status = at_store_lease_acquire(flight->store, flight->fingerprint, flight->problem, LEASE_MS);
  if (status == ATTUNE_BUSY) return status;
  flight->leased = status == ATTUNE_OK;
  flight->renewed_ns = at_now_ns();
  return ATTUNE_OK;
}

attune_status at_flight_wait(void *user) {
  at_flight *flight = user;
  int64_t nap_ns = flight->nap_ns ? 2 * flight->nap_ns : NAP_FIRST_NS;
  if (nap_ns > NAP_MOST_NS) nap_ns = NAP_MOST_NS;
  flight->nap_ns = nap_ns;
  const int64_t left_ns = flight->deadline_ns ? flight->deadline_ns - at_now_ns() : nap_ns;
  if (left_ns <= 0) return ATTUNE_BUSY;
  if (nap_ns > left_ns) nap_ns = left_ns;
  if (nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL) != 0 && errno == EINTR && flight->at_once)
    return ATTUNE_BUSY;
  at_flight_renew(flight);
  return ATTUNE_OK;
}

void at_flight_renew(void *user) {
  at_flight *flight = user;
  if (!flight->leased || at_now_ns() - flight->renewed_ns < RENEW_NS) return;
  flight->renewed_ns = at_now_ns();
  (void)at_store_lease_renew(flight->store, flight->fingerprint, flight->problem, LEASE_MS);
}

void at_flight_end(at_flight *flight) {
  if (flight->leased) at_store_lease_release(flight->store, flight->fingerprint, flight->problem);
  flight->leased = false;
}
