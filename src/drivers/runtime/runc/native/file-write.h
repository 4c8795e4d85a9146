/* Writes a file whole or not at all: what is not complete has no name, and a rename gives it one. */
#pragma once
#include "file-output.h"

struct fresh { struct place place; int fd; int is_named; char name[NAME_BYTES]; };

/* A name that nothing else has: the process and what the clock says. */
static void fresh_name(char *name) {
  long now[2];
  call(SYS_clock_gettime, 0, now, 0, 0);
  copy_text(name, ".hangar-", NAME_BYTES);
  word at = length(name);
  at += digits(name + at, (unsigned long)call(SYS_getpid, 0, 0, 0, 0), 10);
  name[at++] = '-';
  digits(name + at, (unsigned long)(now[0] * 1000000000 + now[1]), 10);
}

static struct fresh begin(struct place place, const char *what) {
  struct fresh fresh = {.place = place};
  fresh_name(fresh.name);
  long fd = call(SYS_open_at, place.dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  /* Not every file system has files without a name. */
  fresh.is_named = fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL || fd == -ENOENT;
  if (fresh.is_named) fd = call(SYS_open_at, place.dir, fresh.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  check(fd, what);
  fresh.fd = (int)fd;
  return fresh;
}

static void undo(const struct fresh *fresh) {
  if (fresh->is_named) call(SYS_unlinkat, fresh->place.dir, fresh->name, 0, 0);
}

static void check_fresh(const struct fresh *fresh, long r, const char *what) {
  if (r < 0) undo(fresh);
  check(r, what);
}

static void proc_path(char *path, int fd) {
  copy_text(path, "/proc/self/fd/", 40);
  digits(path + length(path), (unsigned long)fd, 10);
}

static void finish(struct fresh *fresh, const char *what) {
  char self[40];
  check_fresh(fresh, call(SYS_fsync, fresh->fd, 0, 0, 0), what);
  if (!fresh->is_named) {
    proc_path(self, fresh->fd);
    check(call6(SYS_linkat, (word)AT_FDCWD, (word)self, (word)fresh->place.dir, (word)fresh->name, AT_SYMLINK_FOLLOW, 0), what);
    fresh->is_named = 1;
  }
  check_fresh(fresh, call(SYS_renameat, fresh->place.dir, fresh->name, fresh->place.dir, fresh->place.name), what);
  check(call(SYS_fsync, fresh->place.dir, 0, 0, 0), what);
  call(SYS_close, fresh->fd, 0, 0, 0);
}

/* Makes the folders of a path that are missing: all of them, or the last one only. The last one has the mode. */
static void make_folders(const char *path, int all, unsigned mode) {
  static char rest[PATH_BYTES];
  copy_text(rest, path, sizeof rest);
  word end = length(rest);
  while (end > 0 && rest[end - 1] == '/') rest[--end] = 0;
  for (word at = all ? 1 : end; at <= end && end > 0; at++) {
    if (at < end && rest[at] != '/') continue;
    char kept = rest[at];
    rest[at] = 0;
    long fd = resolve(rest, O_PATH | O_DIRECTORY);
    if (fd >= 0) call(SYS_close, fd, 0, 0, 0);
    else if (fd == -ENOENT) {
      struct place place = place_of(rest, "mkdir");
      long r = call(SYS_mkdirat, place.dir, place.name, at == end ? mode : 0755, 0);
      if (r != -EEXIST) check(r, "mkdir");
      call(SYS_close, place.dir, 0, 0, 0);
    } else check(fd, "mkdir");
    rest[at] = kept;
  }
}

/* What is replaced keeps its owners and, unless another mode is given, its mode. */
static unsigned take_over(const struct fresh *fresh, const char *mode, const char *what) {
  struct about old;
  unsigned wanted = *mode ? (unsigned)number(mode, 8) & 07777 : 0644;
  if (look(fresh->place.dir, fresh->place.name, AT_SYMLINK_NOFOLLOW, &old) == 0) {
    if (kind(&old) != S_IFREG) check_fresh(fresh, kind(&old) == S_IFDIR ? -EISDIR : -EINVAL, what);
    check_fresh(fresh, call6(SYS_fchownat, (word)fresh->fd, (word) "", old.uid, old.gid, AT_EMPTY_PATH, 0), what);
    if (!*mode) wanted = old.mode & 07777;
  }
  check_fresh(fresh, call(SYS_fchmod, fresh->fd, wanted, 0, 0), what);
  return wanted;
}

/* Reads exactly so much of the input; 0 when it ends before. */
static int read_exactly(char *to, word count) {
  while (count > 0) {
    long n = call(SYS_read, 0, to, count, 0);
    if (n == -EINTR) continue;
    if (n <= 0) return 0;
    to += n;
    count -= (word)n;
  }
  return 1;
}

/* `write PATH MODE PARENTS FOLDER_MODE`: pieces of input, each after its length in four bytes; the last one is empty. */
static void op_write(char **words) {
  static char piece[64 * 1024];
  char folder[PATH_BYTES];
  copy_text(folder, words[0], sizeof folder);
  cut(folder);
  if (words[2][0] != '0') make_folders(folder, words[2][0] == '2', (unsigned)number(words[3], 8));
  struct fresh fresh = begin(target_of(words[0], "open"), "open");
  unsigned mode = take_over(&fresh, words[1], "open");
  unsigned long size = 0;
  for (unsigned left;;) {
    if (!read_exactly((char *)&left, sizeof left)) check_fresh(&fresh, -EINTR, "write");
    if (left == 0) break;
    size += left;
    while (left > 0) {
      unsigned count = left < sizeof piece ? left : sizeof piece, at = 0;
      if (!read_exactly(piece, count)) check_fresh(&fresh, -EINTR, "write");
      while (at < count) {
        long n = call(SYS_write, fresh.fd, piece + at, count - at, 0);
        if (n != -EINTR) check_fresh(&fresh, n, "write");
        if (n > 0) at += (unsigned)n;
      }
      left -= count;
    }
  }
  finish(&fresh, "write");
  number_field(size, 10);
  number_field(mode, 8);
}
