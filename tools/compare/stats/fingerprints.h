/* SPDX-License-Identifier: Apache-2.0
 * fingerprints.h: where two runs were made on different things. */
#ifndef GATE_FINGERPRINTS_H
#define GATE_FINGERPRINTS_H

#include <jansson.h>

/* Differences of two JSON objects, one per line, "cpu: A, now B"; NULL: none. Texts that are not objects are compared
 * as texts. The caller frees the result. */
char *gate_fingerprint_differences(const char *base, const char *head);

/* The value of the member `name` for people, with its unit, for the caller to free; NULL value: "not known". */
char *gate_fact_text(const char *name, const json_t *value);

#endif
