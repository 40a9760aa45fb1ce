/* SPDX-License-Identifier: Apache-2.0
 * comm.c: the life of a communicator. */
#include "src/comm/communicator.h"

#include <stdlib.h>
#include <time.h>

#include "src/comm/nccl_library.h"
#include "src/process/fork.h"

/* How long an abort lets a call of another thread come to its end before it takes it for stuck. */
enum { ABORT_LOOKS = 100, ABORT_LOOK_NS = 1000000 };

/* ---- the end ---- */

static void release(attune_comm *comm) {
  for (int i = 0; i < comm->local; i++) attune_event_destroy(comm->events[i]);
  free(comm);
}

/* In a child of fork NCCL is not called at all: its threads and devices are the parent's. */
void attune_comm_destroy(attune_comm *comm) {
  if (!comm) return;
  const at_message kept = at_message_keep();
  if (comm->nccl && comm->generation == at_fork_generation()) at_nccl_destroy(comm);
  release(comm);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

static attune_status check_comm(const attune_comm *comm) {
  AT_REQUIRE_AS(comm, "be a communicator from attune_comm_create");
  if (comm->generation == at_fork_generation()) return ATTUNE_OK;
  return at_fail(ATTUNE_DEVICE_ERROR, "comm was created before fork; should be created again in the child");
}

/* A call that has looked at `aborted` before is either through soon, or stuck in NCCL, which lets it go then. */
attune_status attune_comm_abort(attune_comm *comm) {
  attune_status status = check_comm(comm);
  if (status != ATTUNE_OK || atomic_exchange(&comm->aborted, true) || !comm->nccl) return status;
  for (int i = 0; i < ABORT_LOOKS && atomic_load(&comm->calling); i++)
    (void)nanosleep(&(struct timespec){.tv_nsec = ABORT_LOOK_NS}, NULL);
  return at_nccl_abort(comm);
}

attune_status at_comm_begin(attune_comm *comm) {
  AT_TRY(check_comm(comm));
  atomic_store(&comm->calling, true);
  if (!atomic_load(&comm->aborted)) return ATTUNE_OK;
  return at_comm_end(comm, at_fail(ATTUNE_DEVICE_ERROR, "comm was aborted; should be destroyed and created again"));
}

attune_status at_comm_end(attune_comm *comm, attune_status status) {
  atomic_store(&comm->calling, false);
  return status;
}

attune_status attune_comm_check(attune_comm *comm) {
  AT_TRY(at_comm_begin(comm));
  return at_comm_end(comm, comm->nccl ? at_nccl_check(comm) : ATTUNE_OK);
}

/* ---- the making ---- */

static attune_status check_devices(attune_device *const *devices, int count) {
  if (!devices) return AT_INVALID("devices is NULL; should point to %d devices", count);
  if (count < 1 || count > ATTUNE_COMM_DEVICES)
    return AT_INVALID("count is %d; should be from 1 to %d", count, ATTUNE_COMM_DEVICES);
  for (int i = 0; i < count; i++) {
    if (!devices[i]) return AT_INVALID("devices[%d] is NULL; should be a device from attune_device_get", i);
    if (devices[i]->backend.kind != devices[0]->backend.kind)
      return AT_INVALID("devices[%d] is %s and devices[0] %s; should be of one kind", i, devices[i]->name,
                        devices[0]->name);
    for (int j = 0; j < i; j++)
      if (devices[j] == devices[i])
        return AT_INVALID("devices[%d] and devices[%d] are both %s; should be distinct", j, i, devices[i]->name);
  }
  return ATTUNE_OK;
}

static attune_comm *new_comm(attune_device *const *devices, int local, int rank, int size) {
  attune_comm *comm = calloc(1, sizeof *comm);
  if (!comm) return NULL;
  comm->size = size;
  comm->local = local;
  comm->rank = rank;
  comm->generation = at_fork_generation();
  for (int i = 0; i < local; i++) comm->devices[i] = devices[i];
  return comm;
}

static void describe(attune_comm *comm) {
  size_t at = 0;
  (void)at_append(comm->description, sizeof comm->description, &at, comm->nccl ? "nccl %s" : "copies",
                  at_nccl_version());
}

/* The events by which the streams wait for each other: no order of the program's follows from them. */
static attune_status make_events(attune_comm *comm) {
  static const attune_event_options options = {.no_timing = 1};
  for (int i = 0; i < comm->local && comm->local > 1; i++) {
    AT_TRY(attune_event_create(&comm->events[i], comm->devices[i], &options));
    comm->events[i]->unwatched = true;
  }
  return ATTUNE_OK;
}

/* Peers copy directly; those that cannot be peers, through memory of the host. */
static bool make_peers(const attune_comm *comm) {
  bool all = true;
  const at_message kept = at_message_keep();
  for (int i = 0; i < comm->local; i++)
    for (int j = 0; j < comm->local; j++) {
      int can = 0;
      if (i == j) continue;
      const bool known = attune_device_can_access_peer(&can, comm->devices[i], comm->devices[j]) == ATTUNE_OK && can;
      all = known && attune_device_enable_peer(comm->devices[i], comm->devices[j]) == ATTUNE_OK && all;
    }
  (void)at_message_settle(&kept, ATTUNE_OK);
  return all;
}

static attune_status choose(attune_comm *comm, attune_comm_way way) {
  const bool known = comm->devices[0]->backend.nccl;
  attune_status status = ATTUNE_OK;
  if (way == ATTUNE_COMM_NCCL && !known)
    return at_fail(ATTUNE_UNSUPPORTED, "NCCL does not support device %s; way should be ATTUNE_COMM_COPIES",
                   comm->devices[0]->name);
  const at_message kept = at_message_keep();
  if (way == ATTUNE_COMM_NCCL || (way == ATTUNE_COMM_ANY && known && comm->local > 1)) {
    status = at_nccl_open();
    comm->nccl = status == ATTUNE_OK;
    if (way == ATTUNE_COMM_ANY) status = at_message_settle(&kept, ATTUNE_OK);
  }
  if (status == ATTUNE_OK && comm->nccl) status = at_nccl_create(comm);
  return status;
}

attune_status attune_comm_create(attune_comm **out, attune_device *const *devices, int count, attune_comm_way way) {
  AT_REQUIRE_AS(out, "point to an attune_comm *");
  *out = NULL;
  AT_TRY(check_devices(devices, count));
  if ((int)way < ATTUNE_COMM_ANY || way > ATTUNE_COMM_COPIES)
    return AT_INVALID("way is %d; should be any (0), nccl (1) or copies (2)", (int)way);
  attune_comm *comm = new_comm(devices, count, 0, count);
  if (!comm) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a communicator");
  attune_status status = choose(comm, way);
  if (status == ATTUNE_OK) status = make_events(comm); /* with NCCL too: for scatter, gather and its missing types */
  if (status != ATTUNE_OK) {
    attune_comm_destroy(comm);
    return status;
  }
  comm->pair = make_peers(comm) && way == ATTUNE_COMM_ANY && count == 2;
  describe(comm);
  *out = comm;
  return ATTUNE_OK;
}

attune_status attune_comm_make_id(attune_comm_id *out) {
  AT_REQUIRE_AS(out, "point to an attune_comm_id");
  return at_nccl_make_id(out);
}

attune_status attune_comm_join(attune_comm **out, attune_device *device, const attune_comm_id *id, int rank, int size) {
  AT_REQUIRE_AS(out, "point to an attune_comm *");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(id, "be an id from attune_comm_make_id");
  if (size < 1) return AT_INVALID("size is %d; should be the number of processes", size);
  if (rank < 0 || rank >= size) return AT_INVALID("rank is %d; should be from 0 to %d", rank, size - 1);
  if (!device->backend.nccl)
    return at_fail(
        ATTUNE_UNSUPPORTED,
        "a communicator of several processes uses NCCL, which does not support device %s; should be a CUDA device",
        device->name);
  attune_comm *comm = new_comm(&device, 1, rank, size);
  if (!comm) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a communicator");
  comm->nccl = true;
  attune_status status = at_nccl_join(comm, id);
  if (status != ATTUNE_OK) {
    release(comm);
    return status;
  }
  describe(comm);
  *out = comm;
  return ATTUNE_OK;
}

/* ---- questions ---- */

int attune_comm_size(const attune_comm *comm) {
  return comm ? comm->size : 0;
}

int attune_comm_rank(const attune_comm *comm) {
  return comm ? comm->rank : -1;
}

const char *attune_comm_describe(const attune_comm *comm) {
  return comm ? comm->description : "";
}
