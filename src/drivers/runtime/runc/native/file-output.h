/* Fields of the answer, each ended by a zero byte, and the relative path that a walk is at. */
#pragma once
#include "file-paths.h"

static char out[32 * 1024];
static word out_bytes;

static void write_all(int fd, const char *bytes, word count) {
  while (count > 0) {
    long n = call(SYS_write, fd, bytes, count, 0);
    if (n == -EINTR) continue;
    check(n, "write");
    bytes += n;
    count -= (word)n;
  }
}

static void flush(void) {
  write_all(1, out, out_bytes);
  out_bytes = 0;
}

static void field(const char *text) {
  word n = length(text) + 1;
  if (out_bytes + n > sizeof out) flush();
  if (n > sizeof out) check(-ENAMETOOLONG, "write");
  for (word at = 0; at < n; at++) out[out_bytes++] = text[at];
}

static void number_field(unsigned long n, unsigned base) {
  char text[24];
  digits(text, n, base);
  field(text);
}

/* Type and permissions, size, seconds and nanoseconds of the last change (before 1970: 0), owners, name. */
static void show(const struct about *about, const char *name) {
  number_field(about->mode, 8);
  number_field(about->size, 10);
  number_field(about->mtime.seconds < 0 ? 0 : (unsigned long)about->mtime.seconds, 10);
  number_field(about->mtime.nanos, 10);
  number_field(about->uid, 10);
  number_field(about->gid, 10);
  field(name);
}

static char relative[16 * PATH_BYTES];

/* Adds a name to the relative path, which is `at` bytes long, and answers its new length. */
static word descend(word at, const char *name) {
  if (at > 0) relative[at++] = '/';
  copy_text(relative + at, name, sizeof relative - at - 1);
  return at + length(name);
}
