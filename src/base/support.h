/* SPDX-License-Identifier: Apache-2.0
 * support.h: what every floor uses: failing with a message, the log, checked arithmetic, the clock. */
#ifndef AT_SUPPORT_H
#define AT_SUPPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <attune/status.h>

#define AT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define AT_LIKELY(x) __builtin_expect(!!(x), 1)
#define AT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define AT_INLINE __attribute__((always_inline)) static inline /* on the way of every call */
#define AT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Sets the thread's message and returns `status`: `return at_fail(ATTUNE_IO_ERROR, "%s: ...", path)`. */
attune_status at_fail(attune_status status, const char *format, ...) AT_PRINTF(2, 3);
#define AT_INVALID(...) at_fail(ATTUNE_INVALID_ARGUMENT, __VA_ARGS__)

/* Returns from the function with the status of a call that fails. */
#define AT_TRY(call)                                   \
  do {                                                 \
    const attune_status tried = (call);                \
    if (AT_UNLIKELY(tried != ATTUNE_OK)) return tried; \
  } while (0)

/* Fails a public call where one of up to four arguments is NULL, with its name: "problem is NULL; should be given". */
#define AT_REQUIRE(...) \
  AT_REQUIRE_PICK(__VA_ARGS__, AT_REQUIRE_4, AT_REQUIRE_3, AT_REQUIRE_2, AT_REQUIRE_1, )(__VA_ARGS__)
#define AT_REQUIRE_PICK(a, b, c, d, name, ...) name
#define AT_REQUIRE_1(a) AT_REQUIRE_AS(a, "be given")
#define AT_REQUIRE_2(a, b) \
  do {                     \
    AT_REQUIRE_1(a);       \
    AT_REQUIRE_1(b);       \
  } while (0)
#define AT_REQUIRE_3(a, b, c) \
  do {                        \
    AT_REQUIRE_2(a, b);       \
    AT_REQUIRE_1(c);          \
  } while (0)
#define AT_REQUIRE_4(a, b, c, d) \
  do {                           \
    AT_REQUIRE_2(a, b);          \
    AT_REQUIRE_2(c, d);          \
  } while (0)
/* With what it should be instead: AT_REQUIRE_AS(fn, "be a function"). */
#define AT_REQUIRE_AS(argument, should)                                                    \
  do {                                                                                     \
    if (AT_UNLIKELY(!(argument))) return AT_INVALID(#argument " is NULL; should " should); \
  } while (0)
#define AT_REQUIRE_DEVICE(device) AT_REQUIRE_AS(device, "be a device from attune_device_get")
#define AT_REQUIRE_GRAPH(graph) AT_REQUIRE_AS(graph, "be a graph from attune_graph_create")
#define AT_REQUIRE_STREAM(stream) \
  AT_REQUIRE_AS(stream, "be a stream from attune_stream_create or attune_stream_default")

/* Notes CUDA's number for the failure that at_fail has just told; returns `status`. */
attune_status at_fail_cuda(attune_status status, int cuda_error);

/* The same with lines of its own: what is wrong with the remedy, the line of the text, and the caret below it. Cut
 * where the message is full; control characters within a line become blanks. */
attune_status at_fail_lines(attune_status status, const char *const *lines, int count);

/* Puts a word before the thread's message ("workload.csv:3:5: ") and returns `status`. */
attune_status at_fail_prefix(attune_status status, const char *format, ...) AT_PRINTF(2, 3);

/* The thread's message, kept over work in which something may fail although it succeeds as a whole: a call that
 * succeeds leaves the message alone. settle puts it back when `status`, which it returns, is OK. */
#define AT_MESSAGE_CHARS 640
typedef struct at_message {
  char text[AT_MESSAGE_CHARS];
  attune_status status;
  int cuda_error;
} at_message;
at_message at_message_keep(void);
attune_status at_message_settle(const at_message *kept, attune_status status);

/* Logs one line, if anybody listens. Call it without holding a lock. */
void at_log(attune_log_level level, const char *format, ...) AT_PRINTF(2, 3);

/* True when a message of `level` would go anywhere. */
bool at_log_wanted(attune_log_level level);

/* Monotonic nanoseconds. */
int64_t at_now_ns(void);

/* The processor's counter, which runs evenly, at a rate of its own: a look takes half as long as one at the clock. */
int64_t at_ticks(void);

AT_INLINE bool at_is_power_of_two(int64_t x) {
  return x > 0 && (x & (x - 1)) == 0;
}

/* *out = a * b or a + b; false on overflow or a negative operand. */
bool at_mul_i64(int64_t *out, int64_t a, int64_t b);
bool at_add_i64(int64_t *out, int64_t a, int64_t b);

/* Control characters become blanks: a message stays one line whatever a file name or a driver put into it. */
void at_one_line(char *text);

/* Copies text into out[size], always terminated; false when it did not fit. */
bool at_copy_text(char *out, size_t size, const char *text);

/* Seconds since 1970 as "2026-11-27 16:40:47 UTC". Not by the C library: its functions take a lock of the time zone,
 * which a child of fork may find held for ever. Years 0 to 9999; others are cut to these. */
#define AT_UTC_CHARS 32
void at_utc_text(char out[AT_UTC_CHARS], int64_t seconds);

/* As much of a text as a message has room for, with "..." where it was cut; returns out. */
#define AT_SHOWN_CHARS 352
const char *at_shown(char out[AT_SHOWN_CHARS], const char *text);

/* snprintf at out+*at, moving *at; false when it did not fit (out stays terminated, *at stays inside). */
bool at_append(char *out, size_t size, size_t *at, const char *format, ...) AT_PRINTF(4, 5);

/* "12.345 us" with `decimals`, 0 to 3: in the unit that suits the time, and with a point in every locale. */
#define AT_TIME_CHARS 32
const char *at_time_text(char out[AT_TIME_CHARS], double ns, int decimals);

/* Memory for large data that is touched soon, in huge pages where the system has them (a page fault each 2 MiB, not
 * each 4 KiB). Release it with free(). NULL when memory is short; bytes = 0 gives a pointer too. */
void *at_alloc_large(size_t bytes);

/* ---- numbers in texts: settings, workloads, problems, configurations, expressions (number.c) ----
 * They are written as in C, with a point, whatever the program's locale says; NaN, infinity, hexadecimal floats and
 * spaces are no numbers, and neither is one that its type cannot hold. errno stays as it was. */

/* The decimal integer that the text begins with, with a - or none; its characters, 0: there is none, or int64 cannot
 * hold it. */
size_t at_read_i64(int64_t *out, const char *text);

/* The same, and nothing behind it. */
bool at_parse_i64(int64_t *out, const char *text);

/* The decimal number that the text begins with: "3", "-2.5", ".5", "1e-3"; rounded to the nearest, however many digits
 * it has. Its characters, 0: there is none, or it is above 1.8e308. */
size_t at_read_number(double *out, const char *text);

/* The same without sign and exponent, "0.25", and nothing behind it. */
bool at_parse_decimal(double *out, const char *text);

#endif
