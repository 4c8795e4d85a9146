/* `watch RECURSIVE PATH …`: changes as they happen, until the input ends. */
#pragma once
#include "file-output.h"

enum {
  IN_MODIFY = 2, IN_ATTRIB = 4, IN_MOVED_FROM = 0x40, IN_MOVED_TO = 0x80, IN_CREATE = 0x100, IN_DELETE = 0x200, IN_DELETE_SELF = 0x400,
  IN_MOVE_SELF = 0x800, IN_Q_OVERFLOW = 0x4000, IN_IGNORED = 0x8000, IN_ISDIR = 0x40000000, IN_ALL = 0xfc6, IN_CLOEXEC = 02000000,
  POLLIN = 1, WATCHES = 8192, PATHS_BYTES = 4 << 20
};

struct watch { int number; unsigned at; };
static struct watch watches[WATCHES];
static char paths[PATHS_BYTES];
static unsigned watch_count, paths_bytes;
static int notify, is_recursive;

static const char *path_of_watch(int number) {
  for (unsigned n = watch_count; n > 0; n--)
    if (watches[n - 1].number == number) return paths + watches[n - 1].at;
  return 0;
}

static void tell(const char *event, const char *folder, const char *name, int is_dir) {
  static char path[2 * PATH_BYTES];
  struct about about;
  copy_text(path, folder, PATH_BYTES);
  word n = length(path);
  if (name) {
    if (n == 0 || path[n - 1] != '/') path[n++] = '/';
    copy_text(path + n, name, NAME_BYTES);
  }
  long fd = resolve(path, O_PATH | O_NOFOLLOW);
  int is_there = fd >= 0 && look((int)fd, "", AT_EMPTY_PATH, &about) == 0;
  if (fd >= 0) call(SYS_close, fd, 0, 0, 0);
  field(event);
  field(path);
  field(is_dir || (is_there && kind(&about) == S_IFDIR) ? "1" : "0");
  number_field(is_there ? about.size : 0, 10);
}

/* Watches a path, and with `recursive` every folder below. What is in a new folder already is told as new. */
static void watch(const char *path, int is_new, int depth) {
  char self[40], below[PATH_BYTES];
  struct about about;
  long fd = resolve(path, O_PATH | (depth > 0 ? O_NOFOLLOW : 0));
  if (depth > 0 && fd < 0) return;
  check(fd, "watch");
  check(look((int)fd, "", AT_EMPTY_PATH, &about), "watch");
  copy_text(self, "/proc/self/fd/", sizeof self);
  digits(self + length(self), (unsigned long)fd, 10);
  long added = call(SYS_inotify_add_watch, notify, self, IN_ALL, 0);
  check(added, "watch");
  if (!path_of_watch((int)added)) {
    word n = length(path) + 1;
    if (watch_count == WATCHES || paths_bytes + n > PATHS_BYTES) check(-28, "watch");
    copy_text(paths + paths_bytes, path, PATH_BYTES);
    watches[watch_count++] = (struct watch){(int)added, paths_bytes};
    paths_bytes += (unsigned)n;
  }
  long folder = kind(&about) == S_IFDIR && is_recursive ? call(SYS_open_at, fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
  call(SYS_close, fd, 0, 0, 0);
  if (folder < 0) return;
  check_depth(depth, "watch");
  struct reading reading = {.fd = (int)folder};
  for (const char *name; (name = next_name(&reading));) {
    if (look((int)folder, name, AT_SYMLINK_NOFOLLOW, &about) < 0) continue;
    if (is_new) tell("create", path, name, kind(&about) == S_IFDIR);
    if (kind(&about) != S_IFDIR) continue;
    copy_text(below, path, sizeof below);
    word n = length(below);
    if (n == 0 || below[n - 1] != '/') below[n++] = '/';
    copy_text(below + n, name, sizeof below - n);
    watch(below, is_new, depth + 1);
  }
  call(SYS_close, folder, 0, 0, 0);
}

/* The number of a watch whose folder is gone may be given again. */
static void forget_watch(int number) {
  for (unsigned n = 0; n < watch_count; n++)
    if (watches[n].number == number) watches[n] = watches[--watch_count];
}

struct event { int number; unsigned mask, cookie, size; char name[]; };

static void happened(const struct event *event) {
  static char below[2 * PATH_BYTES];
  const char *folder = path_of_watch(event->number), *name = event->size ? event->name : 0;
  int is_dir = (event->mask & IN_ISDIR) != 0;
  if (event->mask & IN_Q_OVERFLOW) return tell("overflow", "", 0, 0);
  if (event->mask & IN_IGNORED) return forget_watch(event->number);
  if (!folder) return;
  if (event->mask & (IN_CREATE | IN_MOVED_TO)) tell("create", folder, name, is_dir);
  if (event->mask & IN_MODIFY) tell("write", folder, name, is_dir);
  if (event->mask & (IN_DELETE | IN_DELETE_SELF)) tell("remove", folder, name, is_dir);
  if (event->mask & (IN_MOVED_FROM | IN_MOVE_SELF)) tell("rename", folder, name, is_dir);
  if (event->mask & IN_ATTRIB) tell("chmod", folder, name, is_dir);
  if (!is_recursive || !is_dir || !name || !(event->mask & (IN_CREATE | IN_MOVED_TO))) return;
  copy_text(below, folder, PATH_BYTES);
  word n = length(below);
  if (n == 0 || below[n - 1] != '/') below[n++] = '/';
  copy_text(below + n, name, NAME_BYTES);
  if (length(below) < PATH_BYTES) watch(below, 1, 1);
}

static void op_watch(char **words) {
  static char buffer[16 * 1024] __attribute__((aligned(8)));
  is_recursive = words[0][0] == '1';
  long fd = call(SYS_inotify_init1, IN_CLOEXEC, 0, 0, 0);
  check(fd, "watch");
  notify = (int)fd;
  for (char **path = words + 1; *path; path++) watch(*path, 0, 0);
  tell("subscribed", "", 0, 0);
  for (;;) {
    flush();
    struct { int fd; short wanted, came; } both[2] = {{0, POLLIN, 0}, {notify, POLLIN, 0}};
    long r = call6(SYS_ppoll, (word)both, 2, 0, 0, 0, 0);
    if (r == -EINTR) continue;
    /* The one who started us has left. */
    if (r < 0 || both[0].came) return;
    long have = call(SYS_read, notify, buffer, sizeof buffer, 0);
    check(have, "watch");
    for (long at = 0; at < have;) {
      struct event *event = (struct event *)(buffer + at);
      happened(event);
      at += (long)(sizeof *event + event->size);
    }
  }
}
