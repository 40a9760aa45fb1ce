/* SPDX-License-Identifier: Apache-2.0
 * journal.h: does a rollback journal name another file? SQLite writes such a name, of a "super-journal", when one
 * transaction changes several databases, and deletes the file of that name once it has undone the transaction; attune
 * changes one database at a time and never writes one. So a journal that names a file was put there, or comes from
 * another program, and SQLite must not see it. The name lies at the journal's end: a page number (4 bytes), the name,
 * its length (4 bytes, big-endian), a checksum (4 bytes), and the 8 bytes that a journal also begins with. A
 * write-ahead log has no such name. */
#ifndef AT_JOURNAL_H
#define AT_JOURNAL_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True when it does, whatever the checksum says: then name[size] is it, cut where it is long. False too when there is
 * no journal, or it cannot be read: then SQLite cannot either. `journal` is not the database's own inode, for closing
 * that would drop the locks that this process has on it. */
static inline bool at_journal_names_file(const char *journal, char *name, size_t size) {
  enum { TAIL = 16 };
  static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  unsigned char tail[TAIL] = {0};
  struct stat info;
  *name = '\0';
  const int file = open(journal, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  bool names = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > TAIL &&
               pread(file, tail, TAIL, info.st_size - TAIL) == TAIL && memcmp(tail + 8, magic, sizeof magic) == 0;
  const uint32_t length = (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 | (uint32_t)tail[2] << 8 | tail[3];
  names = names && length > 0 && (int64_t)length <= (int64_t)info.st_size - TAIL;
  if (names) {
    const size_t wanted = length < size - 1 ? length : size - 1;
    const ssize_t got = pread(file, name, wanted, (off_t)(info.st_size - TAIL - (off_t)length));
    name[got > 0 ? got : 0] = '\0';
  }
  (void)close(file);
  return names;
}

#endif
