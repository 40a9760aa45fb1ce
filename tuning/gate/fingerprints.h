/* SPDX-License-Identifier: Apache-2.0
 * fingerprints.h: where two runs were made on different things. */
#ifndef GATE_FINGERPRINTS_H
#define GATE_FINGERPRINTS_H

/* Two JSON objects: what differs, one a line, "cpu: A, now B"; NULL: nothing. What is no object is compared as it is. The
 * caller frees it. */
char *gate_fingerprint_differences(const char *base, const char *head);

#endif
