/* SPDX-License-Identifier: Apache-2.0
 * devices.c: what the machine has, what its devices can do and how busy they are; settings of a device. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static int show_library(void *user, const attune_library *library) {
  (void)user;
  printf("  %s %s %s\n", library->name, library->version, *library->problem ? library->problem : library->path);
  return 0;
}

static int show_process(void *user, const attune_device_process *process) {
  (void)user;
  printf("  process %lld: %lld bytes\n", (long long)process->pid, (long long)process->memory_bytes);
  return 0;
}

static void show_device(attune_device *device) {
  attune_device_properties p = {0};
  attune_device_details d = {0};
  attune_telemetry now = {0};
  uint64_t free_bytes = 0, total = 0;
  check(attune_device_get_properties(device, &p));
  check(attune_device_get_details(device, &d));
  check(attune_device_get_telemetry(device, &now));
  printf("%s: %s, architecture %s, %d processors, %s\n", attune_device_name(device), p.name,
         p.kind == ATTUNE_DEVICE_CUDA ? attune_architecture_name(p.capability_major, p.capability_minor) : "none",
         p.processors, attune_device_is_initialized(device) ? "in use by this process" : "not in use yet");
  if (now.busy_percent != ATTUNE_NOT_KNOWN) printf("  busy for %lld %% of the time\n", (long long)now.busy_percent);
  check(attune_device_libraries(device, show_library, NULL));
  if (attune_device_each_process(device, show_process, NULL) != ATTUNE_OK) printf("  %s\n", attune_last_message());
  check(attune_device_memory_info(device, &free_bytes, &total));
  printf("  %llu of %llu bytes are free\n", (unsigned long long)free_bytes, (unsigned long long)total);
}

/* Settings that only GPUs have. How threads wait is set before a device's first use, so by another program. */
static void set_limits(attune_device *device) {
  attune_schedule schedule = ATTUNE_SCHEDULE_AUTO;
  size_t stack = 0;
  int clock_khz = 0;
  if (attune_device_get_limit(device, ATTUNE_LIMIT_STACK, &stack) != ATTUNE_OK) {
    printf("%s\n", attune_last_message());
    return;
  }
  check(attune_device_set_limit(device, ATTUNE_LIMIT_STACK, 2 * stack)); /* of a thread, for deep recursion */
  check(attune_device_get_schedule(device, &schedule));
  check(attune_device_get_attribute(device, 13, &clock_khz)); /* cudaDevAttrClockRate */
  printf("%s: a stack of %zu bytes, threads wait by way %d, %d kHz\n", attune_device_name(device), 2 * stack,
         (int)schedule, clock_khz);
}

/* Peers copy to each other without the host. */
static void join_peers(attune_device *one, attune_device *other) {
  int can = 0;
  check(attune_device_can_access_peer(&can, one, other));
  printf("%s %s the memory of %s\n", attune_device_name(one), can ? "reaches" : "does not reach",
         attune_device_name(other));
  if (!can) return;
  check(attune_device_enable_peer(one, other));
  if (one != other) check(attune_device_disable_peer(one, other));
}

int main(void) {
  attune_device *device = NULL, *last = NULL;
  int gpus = 0, built_for[32] = {0};
  const int early = attune_is_initialized(); /* a process that forks now may use CUDA in the child */
  if (attune_cuda_count(&gpus) != ATTUNE_OK) printf("%s\n", attune_last_message());
  check(attune_device_get(&device, "best"));
  printf("%s CUDA, %d GPUs; kernels for %d architectures\n", attune_built_with_cuda() ? "built with" : "without", gpus,
         attune_cuda_architectures(built_for, 32));
  if (attune_device_set_schedule(device, ATTUNE_SCHEDULE_BLOCK) != ATTUNE_OK) printf("%s\n", attune_last_message());
  check(attune_device_initialize(device)); /* now, not at the first call that is timed */
  for (int i = 0; i < attune_device_count(); i++) {
    check(attune_device_at(&last, i));
    show_device(last);
  }
  set_limits(device);
  join_peers(device, device);
  if (gpus > 1) {
    check(attune_device_get(&last, "cuda:1"));
    join_peers(device, last);
  }
  check(attune_device_get(&last, "host"));
  check(attune_device_set_current(last)); /* for parts of the program that ask for the current one */
  return !early && attune_is_initialized() && attune_device_current() == last ? 0 : 1;
}
