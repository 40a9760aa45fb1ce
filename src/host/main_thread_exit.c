/* SPDX-License-Identifier: Apache-2.0
 * main_thread_exit.c: see main_thread_exit.h. The state of a process is that of its first thread. */
#include "src/host/main_thread_exit.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/support.h"
#include "src/process/process.h"

static bool main_thread_gone(void) {
  char text[512];
  if (at_read_small("/proc/self/stat", text, sizeof text) == 0) return false;
  const char *name_end = strrchr(text, ')');
  return name_end && strncmp(name_end, ") Z", 3) == 0;
}

void at_main_thread_exit_look(void) {
  static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  if (!main_thread_gone()) return;
  sigset_t through;
  sigemptyset(&through);
  for (size_t i = 0; i < AT_COUNT(ends); i++) {
    struct sigaction action;
    if (sigaction(ends[i], NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL)
      sigaddset(&through, ends[i]);
  }
  (void)pthread_sigmask(SIG_UNBLOCK, &through, NULL);
}
