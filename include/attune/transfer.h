/* SPDX-License-Identifier: Apache-2.0
 * transfer.h: copies of rectangles and boxes, and fills with elements of any size, in stream order. attune_copy and
 * attune_fill (memory.h) are for contiguous bytes, tensor.h for copies that change the type of elements.
 *
 * A box is `slices` slices of `rows` rows of `bytes` bytes. Consecutive rows begin `pitch` bytes apart, and consecutive
 * slices `slice_pitch` bytes apart. With one row or one slice its pitch is ignored. Otherwise a pitch must cover what
 * it steps over: pitch >= bytes, slice_pitch >= (rows - 1) * pitch + bytes.
 *
 * Memory locations and pageable host memory are as for attune_copy. All of these are asynchronous; in a capture they
 * become nodes of the graph, and the race check knows what they read and write. They are called by the thread that uses
 * the stream. */
#ifndef ATTUNE_TRANSFER_H
#define ATTUNE_TRANSFER_H

#include <attune/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies `rows` rows of `bytes` bytes. Destination and source must not share a byte; they may be interleaved row by row
 * if their pitches are equal. No rows or no bytes: does nothing. Errors: INVALID_ARGUMENT, UNSUPPORTED,
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

/* Copies a box; overlaps are as for attune_copy_2d. On CUDA it is one copy if both slice pitches are multiples of the
 * pitches, otherwise one for each slice. Errors as attune_copy_2d. */
ATTUNE_API attune_status attune_copy_3d(attune_stream *stream, const attune_box_copy *copy);

/* The largest element of a fill. */
#define ATTUNE_FILL_BYTES 16

/* Writes the element at `element`, which is read during the call, `count` times starting at `destination`.
 * element_bytes is 1, 2, 4, 8 or 16; `destination` is aligned to that, 16 to 8. Errors: INVALID_ARGUMENT, UNSUPPORTED,
 * DEVICE_ERROR; on CUDA with 8 or 16 bytes, whose kernel is compiled at its first use, also those of a missing
 * compiler. */
ATTUNE_API attune_status attune_fill_elements(attune_stream *stream, void *destination, const void *element,
                                              size_t element_bytes, size_t count);

/* Like attune_fill_elements, in `rows` rows of `count` elements; the pitch, in bytes, is a multiple of the alignment.
 * Errors as above. */
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

/* Fills a box, like attune_fill_2d, with its errors; slice_pitch is also a multiple of the alignment. */
ATTUNE_API attune_status attune_fill_3d(attune_stream *stream, const attune_box_fill *fill);

#ifdef __cplusplus
}
#endif
#endif
