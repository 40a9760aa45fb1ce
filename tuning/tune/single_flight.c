/* SPDX-License-Identifier: Apache-2.0
 * single_flight.c: claims, waits, renewals. Who waits looks seldom, so that it does not disturb what is measured. */
#include "tuning/tune/single_flight.h"

#include <errno.h>
#include <time.h>

#include "src/device/device_lease.h"

enum { LEASE_MS = AT_LEASE_LATE_MS };
static const int64_t RENEW_NS = (int64_t)LEASE_MS * 1000000 / 3, SHOW_NS = 100000000;
static const int64_t NAP_FIRST_NS = 1000000, NAP_MOST_NS = 10000000;

/* A database that another has locked is not waited for longer than the other process would be. */
static int claim_wait_ms(const at_flight *flight) {
  if (!flight->deadline_ns) return AT_STORE_LEASE_WAIT_MS;
  const int64_t left_ms = (flight->deadline_ns - at_now_ns()) / 1000000;
  return left_ms < 0 ? 0 : left_ms < AT_STORE_LEASE_WAIT_MS ? (int)left_ms : AT_STORE_LEASE_WAIT_MS;
}

attune_status at_flight_claim(at_flight *flight) {
  if (!flight->store) return ATTUNE_OK;
  const attune_status status =
      at_store_lease_acquire(flight->store, flight->fingerprint, flight->problem, LEASE_MS, claim_wait_ms(flight));
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
  const int64_t now = at_now_ns(), left_ns = flight->deadline_ns ? flight->deadline_ns - now : nap_ns;
  flight->ended = left_ns <= 0;
  if (flight->ended || (flight->look_ns && now >= flight->look_ns)) return ATTUNE_BUSY;
  if (nap_ns > left_ns) nap_ns = left_ns;
  if (nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL) != 0 && errno == EINTR && flight->at_once)
    flight->ended = true;
  return flight->ended ? ATTUNE_BUSY : at_flight_renew(flight);
}

static attune_status renew(at_flight *flight, bool now) {
  const int64_t now_ns = at_now_ns();
  attune_status status = ATTUNE_OK;
  if (flight->measures && (now || now_ns - flight->shown_ns >= SHOW_NS)) {
    flight->shown_ns = now_ns;
    status = at_device_lease_renew(flight->device);
    if (status != ATTUNE_OK) flight->lost = true;
  }
  if (flight->leased && !flight->lost && (now || now_ns - flight->renewed_ns >= RENEW_NS)) {
    flight->renewed_ns = now_ns;
    if (at_store_lease_renew(flight->store, flight->fingerprint, flight->problem, LEASE_MS) == ATTUNE_NOT_FOUND)
      flight->lost = true;
  }
  return flight->lost ? ATTUNE_BUSY : ATTUNE_OK;
}

/* A database that cannot be written just now takes nothing away; the message stays as it was but for a loss. */
static attune_status renew_quietly(at_flight *flight, bool now) {
  if (flight->lost) return at_fail(ATTUNE_BUSY, "the lease on '%.200s' or on its device was lost", flight->problem);
  const at_message kept = at_message_keep();
  return at_message_settle(&kept, renew(flight, now));
}

attune_status at_flight_renew(void *user) {
  return renew_quietly(user, false);
}

attune_status at_flight_check(at_flight *flight) {
  return renew_quietly(flight, true);
}

void at_flight_end(at_flight *flight) {
  if (flight->leased) at_store_lease_release(flight->store, flight->fingerprint, flight->problem);
  flight->leased = false;
}
