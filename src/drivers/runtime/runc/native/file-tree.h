/* Whole trees: removed, copied, or changed. Links in them are never followed. */
#pragma once
#include "file-write.h"

static unsigned long count_of;
enum { SHOWN = 1000 };

/* The first ones by name, all of them counted. */
static void removed(word at) {
  if (count_of++ < SHOWN) {
    relative[at] = 0;
    field(relative);
  }
}

/* Removes what is in a folder. What another file system is mounted on stays. */
static void empty(int fd, const struct about *top, word at, int depth) {
  struct reading reading = {.fd = fd};
  struct about about;
  check_depth(depth, "rm");
  for (int before = -1, now = 0; before != now;) {
    before = now;
    call(SYS_lseek, fd, 0, 0, 0);
    reading.have = reading.at = 0;
    for (const char *name; (name = next_name(&reading));) {
      long r = call(SYS_unlinkat, fd, name, 0, 0);
      word end = descend(at, name);
      if (r == -EISDIR) {
        long inner = open_folder(fd, name);
        if (inner == -ENOENT) continue;
        check(inner, "rm");
        check(look((int)inner, "", AT_EMPTY_PATH, &about), "rm");
        if (about.dev_major != top->dev_major || about.dev_minor != top->dev_minor) check(-EBUSY, "rm");
        empty((int)inner, top, end, depth + 1);
        call(SYS_close, inner, 0, 0, 0);
        r = call(SYS_unlinkat, fd, name, AT_REMOVEDIR, 0);
      }
      if (r == -ENOENT) continue;
      check(r, "rm");
      removed(end);
      now++;
    }
  }
}

/* `delete PATH RECURSIVE` */
static void op_delete(char **words) {
  struct place place = place_of(words[0], "rm");
  struct about about;
  long r = call(SYS_unlinkat, place.dir, place.name, 0, 0);
  word end = descend(0, place.name);
  if (r == -EISDIR) {
    if (words[1][0] == '1') {
      long fd = open_folder(place.dir, place.name);
      check(fd, "rm");
      check(look((int)fd, "", AT_EMPTY_PATH, &about), "rm");
      empty((int)fd, &about, end, 1);
      call(SYS_close, fd, 0, 0, 0);
    }
    r = call(SYS_unlinkat, place.dir, place.name, AT_REMOVEDIR, 0);
  }
  check(r, "rm");
  removed(end);
  number_field(count_of, 10);
}

/* Attributes of what is copied; without `preserve` its permissions only. */
static void attributes(int fd, const struct about *from, int preserve) {
  long times[4] = {from->atime.seconds, from->atime.nanos, from->mtime.seconds, from->mtime.nanos};
  if (preserve) check(call6(SYS_fchownat, (word)fd, (word) "", from->uid, from->gid, AT_EMPTY_PATH, 0), "copyfile");
  check(call(SYS_fchmod, fd, from->mode & (preserve ? 07777 : 0777), 0, 0), "copyfile");
  if (preserve) check(call(SYS_utimensat, fd, 0, times, 0), "copyfile");
}

static void copy_data(int from, const struct fresh *fresh) {
  static char piece[64 * 1024];
  for (int plain = 0;;) {
    long n = plain ? 0 : call6(SYS_copy_file_range, (word)from, 0, (word)fresh->fd, 0, 1 << 30, 0);
    if (n == -EXDEV || n == -EINVAL || n == -ENOSYS || n == -EOPNOTSUPP) plain = 1;
    if (plain) {
      n = call(SYS_read, from, piece, sizeof piece, 0);
      for (long at = 0; at < n;) {
        long wrote = call(SYS_write, fresh->fd, piece + at, n - at, 0);
        check_fresh(fresh, wrote, "copyfile");
        at += wrote;
      }
    }
    check_fresh(fresh, n, "copyfile");
    /* Some file systems say nothing at once of files that have something. */
    if (n == 0 && plain) return;
    if (n == 0) plain = 1;
  }
}

static void copy_file(int from, struct place to, int preserve) {
  struct about about, old;
  check(look(from, "", AT_EMPTY_PATH, &about), "copyfile");
  if (kind(&about) != S_IFREG) check(-EINVAL, "copyfile");
  if (look(to.dir, to.name, AT_SYMLINK_NOFOLLOW, &old) == 0) {
    if (is_same(&about, &old)) check(-EINVAL, "copyfile");
    if (kind(&old) != S_IFREG) check(kind(&old) == S_IFDIR ? -EISDIR : -EEXIST, "copyfile");
  }
  struct fresh fresh = begin(to, "copyfile");
  copy_data(from, &fresh);
  attributes(fresh.fd, &about, preserve);
  finish(&fresh, "copyfile");
  call(SYS_close, from, 0, 0, 0);
}

/* Opens a file to read it; a pipe without a writer must not hold us up. */
static long open_file(int dir, const char *name) {
  return call(SYS_open_at, dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
}

static void copy_link(int dir, const char *name, struct place to) {
  char link[PATH_BYTES];
  long size = call(SYS_readlinkat, dir, name, link, sizeof link - 1);
  check(size, "copyfile");
  link[size] = 0;
  call(SYS_unlinkat, to.dir, to.name, 0, 0);
  check(call(SYS_symlinkat, link, to.dir, to.name, 0), "copyfile");
}

static void copy_tree(int from, struct place to, int preserve, const struct about *never, int depth) {
  struct about about, made, below;
  struct reading reading = {.fd = from};
  check_depth(depth, "copyfile");
  check(look(from, "", AT_EMPTY_PATH, &about), "copyfile");
  long r = call(SYS_mkdirat, to.dir, to.name, 0700, 0);
  if (r != -EEXIST) check(r, "copyfile");
  long folder = open_folder(to.dir, to.name);
  check(folder, "copyfile");
  check(look((int)folder, "", AT_EMPTY_PATH, &made), "copyfile");
  if (!never) never = &made;
  /* A folder that is copied into itself would never end. */
  if (is_same(&about, never)) check(-EINVAL, "copyfile");
  for (const char *name; (name = next_name(&reading));) {
    struct place inner = {.dir = (int)folder};
    copy_text(inner.name, name, sizeof inner.name);
    if (look(from, name, AT_SYMLINK_NOFOLLOW, &below) < 0) continue;
    if (kind(&below) == S_IFDIR) {
      long fd = open_folder(from, name);
      check(fd, "copyfile");
      copy_tree((int)fd, inner, preserve, never, depth + 1);
    } else if (kind(&below) == S_IFLNK) copy_link(from, name, inner);
    else {
      long fd = open_file(from, name);
      check(fd, "copyfile");
      copy_file((int)fd, inner, preserve);
    }
  }
  attributes((int)folder, &about, preserve);
  call(SYS_close, folder, 0, 0, 0);
  call(SYS_close, from, 0, 0, 0);
}

/* `copy SOURCE DEST RECURSIVE PRESERVE` */
static void op_copy(char **words) {
  struct about about;
  int preserve = words[3][0] == '1';
  long from = resolve(words[0], O_RDONLY | O_NONBLOCK);
  check(from, "copyfile");
  check(look((int)from, "", AT_EMPTY_PATH, &about), "copyfile");
  if (kind(&about) != S_IFDIR) copy_file((int)from, target_of(words[1], "copyfile"), preserve);
  else if (words[2][0] == '1') copy_tree((int)from, target_of(words[1], "copyfile"), preserve, 0, 0);
  else check(-EISDIR, "copyfile");
}

struct change { int has_mode; unsigned mode; unsigned uid, gid; };

/* The descriptor names exactly one file, whatever happens to its path meanwhile. */
static void change_one(int fd, const struct about *about, const struct change *change) {
  char self[40];
  if (!change->has_mode) return check(call6(SYS_fchownat, (word)fd, (word) "", change->uid, change->gid, AT_EMPTY_PATH, 0), "chown");
  if (kind(about) == S_IFLNK) return;
  proc_path(self, fd);
  check(call(SYS_fchmodat, AT_FDCWD, self, change->mode, 0), "chmod");
}

static void change_tree(int fd, const struct change *change, int depth) {
  struct reading reading = {.fd = fd};
  struct about about;
  check_depth(depth, "chmod");
  for (const char *name; (name = next_name(&reading));) {
    long one = call(SYS_open_at, fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (one == -ENOENT) continue;
    check(one, "chmod");
    check(look((int)one, "", AT_EMPTY_PATH, &about), "chmod");
    long inner = kind(&about) == S_IFDIR ? call(SYS_open_at, one, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
    if (inner >= 0) change_tree((int)inner, change, depth + 1);
    change_one((int)one, &about, change);
    call(SYS_close, one, 0, 0, 0);
  }
  call(SYS_close, fd, 0, 0, 0);
}

static void change(const char *path, int recursive, const struct change *wanted, const char *what) {
  struct about about;
  long one = resolve(path, O_PATH);
  check(one, what);
  check(look((int)one, "", AT_EMPTY_PATH, &about), what);
  if (recursive && kind(&about) == S_IFDIR) {
    long fd = call(SYS_open_at, one, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    check(fd, what);
    change_tree((int)fd, wanted, 1);
  }
  change_one((int)one, &about, wanted);
}

/* `chmod PATH MODE RECURSIVE` */
static void op_chmod(char **words) {
  struct change wanted = {.has_mode = 1, .mode = (unsigned)number(words[1], 8) & 07777};
  change(words[0], words[2][0] == '1', &wanted, "chmod");
}

/* `chown PATH UID GID RECURSIVE`; `-` leaves one as it is. */
static void op_chown(char **words) {
  struct change wanted = {.uid = words[1][0] == '-' ? ~0U : (unsigned)number(words[1], 10),
                          .gid = words[2][0] == '-' ? ~0U : (unsigned)number(words[2], 10)};
  change(words[0], words[3][0] == '1', &wanted, "chown");
}
