/* SPDX-License-Identifier: Apache-2.0
 * transfer.h: copies of rectangles and boxes, and fills with elements of any size, in stream order. attune_copy and
 * attune_fill (memory.h) are for plain stretches of bytes, tensor.h for copies that change the type of elements.
 *
 * A box is `slices` slices of `rows` rows of `bytes` bytes. A row begins `pitch` bytes after the one before it, and a
 * slice `slice_pitch` bytes after the one before it. Where there is one row or one slice its pitch does not count. Else
 * a pitch is at least as long as what it steps over: pitch >= bytes, slice_pitch >= (rows - 1) * pitch + bytes.
 *
 * Where memory may lie, and what pageable host memory means, is as for attune_copy. All of these are asynchronous; in a
 * capture they become nodes of the graph, and what they read and write is known to the race check. The thread that uses
 * the stream makes the call. */
#ifndef ATTUNE_TRANSFER_H
#define ATTUNE_TRANSFER_H

#include <attune/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies `rows` rows of `bytes` bytes. Destination and source must not have a byte in common; they may lie between each
 * other's rows if their pitches are equal. No rows or no bytes: nothing is done. Errors: INVALID_ARGUMENT, UNSUPPORTED,
 * DEVICE_ERROR. */
ATTUNE_API attune_status attune_copy_2d(attune_stream *stream, void *destination, size_t destination_pitch,
                                        const void *source, size_t source_pitch, size_t bytes, size_t rows);

/* A copy of a box. Pitches are in bytes. */
typedef struct attune_box_copy {
  void *destination;
  size_t destination_pitch, destination_slice_pitch;
  const void *source;
  size_t source_pitch, source_slice_pitch;
  size_t bytes, rows, slices;
} attune_box_copy;

/* Copies a box; what attune_copy_2d says of overlaps holds. On CUDA it is one copy where both slice pitches are
 * multiples of the pitches, else one for each slice. Errors as attune_copy_2d. */
ATTUNE_API attune_status attune_copy_3d(attune_stream *stream, const attune_box_copy *copy);

/* The largest element of a fill. */
#define ATTUNE_FILL_BYTES 16

/* Writes the element at `element`, which is read during the call, `count` times from `destination` on. element_bytes is
 * 1, 2, 4, 8 or 16; `destination` is aligned to that, 16 to 8. Errors: INVALID_ARGUMENT, UNSUPPORTED, DEVICE_ERROR; on
 * CUDA with 8 or 16 bytes, whose kernel is compiled at its first use, also those of a compiler that cannot be had. */
ATTUNE_API attune_status attune_fill_elements(attune_stream *stream, void *destination, const void *element,
                                              size_t element_bytes, size_t count);

/* The same in `rows` rows of `count` elements; the pitch, in bytes, is a multiple of the alignment. Errors as above. */
ATTUNE_API attune_status attune_fill_2d(attune_stream *stream, void *destination, size_t pitch, const void *element,
                                        size_t element_bytes, size_t count, size_t rows);

/* A fill of a box. Pitches are in bytes. */
typedef struct attune_box_fill {
  void *destination;
  size_t pitch, slice_pitch;
  unsigned char element[ATTUNE_FILL_BYTES]; /* its first element_bytes */
  size_t element_bytes;
  size_t count, rows, slices; /* elements of a row, rows of a slice */
} attune_box_fill;

/* Fills a box, as attune_fill_2d, with its errors; slice_pitch is a multiple of the alignment too. */
ATTUNE_API attune_status attune_fill_3d(attune_stream *stream, const attune_box_fill *fill);

#ifdef __cplusplus
}
#endif
#endif
