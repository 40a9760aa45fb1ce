/* SPDX-License-Identifier: Apache-2.0
 * fake_nvtx.c: a profiler as NVTX loads it (NVTX_INJECTION64_PATH): it writes a line for each call that it is told of
 * to the file FAKE_NVTX. */
#include <stdio.h>
#include <stdlib.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

static FILE *out;
static _Thread_local int depth;

static void mark(const char *text) {
  fprintf(out, "mark %s\n", text);
}
static int push(const char *text) {
  fprintf(out, "push %s\n", text);
  return depth++;
}
static int pop(void) {
  fprintf(out, "pop\n");
  return --depth;
}
static nvtxRangeId_t start(const char *text) {
  fprintf(out, "start %s\n", text);
  return 7;
}
static void end(nvtxRangeId_t range) {
  fprintf(out, "end %d\n", (int)range);
}
static nvtxDomainHandle_t create(const char *name) {
  fprintf(out, "domain %s\n", name);
  return (nvtxDomainHandle_t)(void *)out;
}
static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  fprintf(out, "call%s %s\n", (void *)domain == (void *)out ? "" : " of another domain", event->message.ascii);
  return 0;
}
static int domain_pop(nvtxDomainHandle_t domain) {
  (void)domain;
  fprintf(out, "done\n");
  return 0;
}

static void set(NvtxFunctionTable table, unsigned at, void (*function)(void)) {
  *(void (**)(void))(void *)table[at] = function;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const char *path = getenv("FAKE_NVTX");
  const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable core = NULL, core2 = NULL;
  unsigned size = 0;
  if (!path || !callbacks) return 0;
  out = fopen(path, "w");
  if (!out || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size))
    return 0;
  setvbuf(out, NULL, _IOLBF, 0);
  set(core, NVTX_CBID_CORE_MarkA, (void (*)(void))mark);
  set(core, NVTX_CBID_CORE_RangePushA, (void (*)(void))push);
  set(core, NVTX_CBID_CORE_RangePop, (void (*)(void))pop);
  set(core, NVTX_CBID_CORE_RangeStartA, (void (*)(void))start);
  set(core, NVTX_CBID_CORE_RangeEnd, (void (*)(void))end);
  set(core2, NVTX_CBID_CORE2_DomainCreateA, (void (*)(void))create);
  set(core2, NVTX_CBID_CORE2_DomainRangePushEx, (void (*)(void))domain_push);
  set(core2, NVTX_CBID_CORE2_DomainRangePop, (void (*)(void))domain_pop);
  return 1;
}
