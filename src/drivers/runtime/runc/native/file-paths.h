/* Paths of the machine, resolved by the kernel below one folder: no link, no `..` and no race leads out of it. */
#pragma once
#include "say.h"

enum {
  ENOENT = 2, EINTR = 4, EAGAIN = 11, EBUSY = 16, EEXIST = 17, EXDEV = 18, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENAMETOOLONG = 36,
  ENOSYS = 38, ELOOP = 40, EOPNOTSUPP = 95,
  O_RDONLY = 0, O_WRONLY = 1, O_CREAT = 0100, O_EXCL = 0200, O_NONBLOCK = 04000, O_CLOEXEC = 02000000, O_PATH = 010000000,
#if defined(__x86_64__)
  O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000,
#else
  O_DIRECTORY = 040000, O_NOFOLLOW = 0100000,
#endif
  O_TMPFILE = 020000000 | O_DIRECTORY,
  AT_FDCWD = -100, AT_SYMLINK_NOFOLLOW = 0x100, AT_REMOVEDIR = 0x200, AT_SYMLINK_FOLLOW = 0x400, AT_EMPTY_PATH = 0x1000,
  RESOLVE_IN_ROOT = 0x10,
  S_IFMT = 0170000, S_IFDIR = 0040000, S_IFREG = 0100000, S_IFLNK = 0120000,
  PATH_BYTES = 4096, NAME_BYTES = 256, LINKS = 40, DEPTH = 400, TRIES = 10000
};

/* The compiler calls these for structures, and there is no C library. */
__attribute__((used)) void *memcpy(void *to, const void *from, word count) {
  for (word at = 0; at < count; at++) ((char *)to)[at] = ((const char *)from)[at];
  return to;
}

__attribute__((used)) void *memset(void *to, int byte, word count) {
  for (word at = 0; at < count; at++) ((char *)to)[at] = (char)byte;
  return to;
}

struct how { unsigned long flags, mode, resolve; };

struct moment { long seconds; unsigned nanos; int unused; };

/* The same on every architecture, unlike struct stat. */
struct about {
  unsigned mask, blksize; unsigned long attributes; unsigned nlink, uid, gid; unsigned short mode, unused;
  unsigned long ino, size, blocks, attributes_mask; struct moment atime, btime, ctime, mtime;
  unsigned rdev_major, rdev_minor, dev_major, dev_minor; unsigned long spare[14];
};

static int root;

static word digits(char *to, unsigned long n, unsigned base) {
  char back[24];
  word count = 0, at = 0;
  do back[count++] = (char)('0' + n % base); while (n /= base);
  while (count) to[at++] = back[--count];
  to[at] = 0;
  return at;
}

/* Ends with the number of the error and what could not be done, for the one who reads our standard error. */
static void check(long r, const char *what) {
  char number[24];
  if (r >= 0) return;
  digits(number, (unsigned long)-r, 10);
  say(number);
  say(" ");
  say(what);
  say("\n");
  leave(1);
}

static void copy_text(char *to, const char *from, word room) {
  word n = length(from);
  if (n >= room) check(-ENAMETOOLONG, "open");
  for (word at = 0; at <= n; at++) to[at] = from[at];
}

static unsigned long number(const char *text, unsigned base) {
  unsigned long n = 0;
  while (*text >= '0' && *text < (char)('0' + base)) n = n * base + (unsigned long)(*text++ - '0');
  return n;
}

static int same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

/* Opens a path below the root. A rename at the same time makes the kernel unsure about `..`, and it wants to be asked again. */
static long resolve(const char *path, word flags) {
  struct how how = {flags | O_CLOEXEC, 0, RESOLVE_IN_ROOT};
  long r = -EAGAIN;
  for (int n = 0; n < TRIES && (r == -EAGAIN || r == -EINTR); n++) r = call(SYS_openat2, root, path, &how, sizeof how);
  return r;
}

static long look(int dir, const char *name, int flags, struct about *about) {
  return call6(SYS_statx, (word)dir, (word)name, (word)flags, 0x7ff, (word)about, 0);
}

static int kind(const struct about *about) { return about->mode & S_IFMT; }
static int is_same(const struct about *a, const struct about *b) {
  return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* A name in a folder that is open: what it stands for may change, but not where it is. */
struct place { int dir; char name[NAME_BYTES]; };

/* Splits off the last name of a path, in place, and answers it. The root has none, and `.` and `..` are no names. */
static const char *cut(char *path) {
  word n = length(path);
  while (n > 0 && path[n - 1] == '/') path[--n] = 0;
  while (n > 0 && path[n - 1] != '/') n--;
  const char *name = path + n;
  if (n > 0) path[n - 1] = 0;
  return name;
}

static int is_name(const char *name) { return *name && !same(name, ".") && !same(name, ".."); }

static struct place place_of(const char *given, const char *what) {
  static char path[PATH_BYTES];
  struct place place;
  copy_text(path, given, sizeof path);
  const char *name = cut(path);
  if (!is_name(name)) check(*name ? -EINVAL : -EBUSY, what);
  copy_text(place.name, name, sizeof place.name);
  long dir = resolve(name == path || !path[0] ? "/" : path, O_RDONLY | O_DIRECTORY);
  check(dir, what);
  place.dir = (int)dir;
  return place;
}

/* The same for what is written: a link stands for what it points to, which need not exist. */
static struct place target_of(const char *given, const char *what) {
  static char path[2 * PATH_BYTES], link[PATH_BYTES];
  copy_text(path, given, PATH_BYTES);
  for (int n = 0; n < LINKS; n++) {
    struct place place = place_of(path, what);
    long size = call(SYS_readlinkat, place.dir, place.name, link, sizeof link - 1);
    if (size < 0) return place;
    link[size] = 0;
    call(SYS_close, place.dir, 0, 0, 0);
    word at = 0;
    if (link[0] != '/') {
      cut(path);
      at = length(path);
      path[at++] = '/';
    }
    copy_text(path + at, link, sizeof path - at);
  }
  check(-ELOOP, what);
  __builtin_unreachable();
}

/* Entries of a folder, without itself and the one above. */
struct reading { int fd; long have, at; char buffer[PATH_BYTES]; };
struct entry { unsigned long ino; long offset; unsigned short size; unsigned char type; char name[]; };

static const char *next_name(struct reading *reading) {
  for (;;) {
    if (reading->at >= reading->have) {
      reading->have = call(SYS_getdents64, reading->fd, reading->buffer, sizeof reading->buffer, 0);
      reading->at = 0;
      check(reading->have, "scandir");
      if (reading->have == 0) return 0;
    }
    struct entry *entry = (struct entry *)(reading->buffer + reading->at);
    reading->at += entry->size;
    if (is_name(entry->name)) return entry->name;
  }
}

/* A folder, but never what a link with its name points to. */
static long open_folder(int dir, const char *name) {
  return call(SYS_open_at, dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static void check_depth(int depth, const char *what) {
  if (depth > DEPTH) check(-ENAMETOOLONG, what);
}
