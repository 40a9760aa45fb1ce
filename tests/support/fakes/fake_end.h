/* SPDX-License-Identifier: Apache-2.0
 * fake_end.h: for made libraries of vendors: with FAKE_END set a call takes a while, as a vendor's does, and the
 * process dies when one runs at or after the library's end. That begins with its destructor, or with FAKE_END=late
 * with a function of exit() that the library asks for at its third call only, as C++ does for objects within
 * functions; with FAKE_END=often it asks for many, all the time, in each of its first calls; with FAKE_END=opened it
 * asks while it is being opened, which takes a while; with FAKE_END=count it asks at its third call, and the function
 * writes a line to the file FAKE_END_LOG. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_bool fake_ended;
static atomic_int fake_calls_begun;

static void fake_nap(long ns) {
  (void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Long enough for whoever comes in now to be seen. */
static void fake_end(void) {
  const char *end = getenv("FAKE_END");
  if (!end || atomic_exchange(&fake_ended, true)) return;
  if (strcmp(end, "opened") != 0) fake_nap(100000000);
}

static void fake_note(void) {
  FILE *log = fopen(getenv("FAKE_END_LOG"), "a");
  if (!log) abort();
  fputs("called\n", log);
  fclose(log);
}

__attribute__((constructor)) static void fake_opened(void) {
  const char *end = getenv("FAKE_END");
  if (!end || strcmp(end, "opened") != 0) return;
  (void)atexit(fake_end);
  fake_nap(50000000);
}

__attribute__((destructor)) static void fake_end_last(void) {
  fake_end();
}

static void fake_work(void) {
  const char *end = getenv("FAKE_END");
  if (!end) return;
  const int call = atomic_fetch_add(&fake_calls_begun, 1);
  if (call == 2 && strcmp(end, "count") == 0) (void)atexit(fake_note);
  if (call == 2 && strcmp(end, "late") == 0) (void)atexit(fake_end);
  for (int i = 0; i < 10000 && call < 60 && strcmp(end, "often") == 0; i++) (void)atexit(fake_end);
  if (atomic_load(&fake_ended)) abort();
  fake_nap(2000000);
  if (atomic_load(&fake_ended)) abort();
}
