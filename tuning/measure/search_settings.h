/* SPDX-License-Identifier: Apache-2.0
 * search_settings.h: how a tuner searches: an attune_search_options, which ATTUNE_SEARCH sets as text:
 * "key:value,key:value". */
#ifndef AT_SEARCH_SETTINGS_H
#define AT_SEARCH_SETTINGS_H

#include <attune/tuner.h>

/* Sets the keys of `text`; those not named stay. INVALID_ARGUMENT names `source`, key and value, and *out is as
 * before. */
attune_status at_search_settings_parse(attune_search_options *out, const char *text, const char *source);

/* INVALID_ARGUMENT names the field that is out of its bounds. */
attune_status at_search_settings_check(const attune_search_options *options);

#endif
