/*
 * Loaded into a CRIU that is older than the kernel, this answers three questions as older kernels did. It is of no
 * effect where the kernel's own answer is the one CRIU expects.
 *
 * - Linux 6.16 and later refuse SO_PASSCRED, SO_PASSSEC and SO_PASSPIDFD on sockets that are not unix sockets. CRIU
 *   before 4.2 asks every socket for them and gives up. The answer was 0.
 * - Linux 6.13 and later show on x86 the pages behind the clock as two areas, [vvar] and [vvar_vclock]. CRIU before 4.1
 *   knows only the first. Read from a list of areas, the two are one again.
 * - Processors whose registers fill more than 4096 bytes (AMX) are unknown to CRIU before 3.18: it sets the part it
 *   knows, and the kernel wants all of it. The rest is then set to what it is.
 *
 * It shows CRIU another place for what it found out about the kernel. CRIU keeps that in /run, if /run is in memory,
 * and otherwise finds it out again each time, which is half of what a resume takes. HANGAR_RUN is in memory.
 *
 * And memory that comes from a FUSE file system is read with O_DIRECT: then the kernel asks for the next MiB while it
 * waits for the last ones, and otherwise for one after the other.
 */
#include "syscalls.h"

enum {
  EOPNOTSUPP = 95, SOL_SOCKET = 1, SO_PASSCRED = 16, SO_PASSSEC = 34, SO_PASSPIDFD = 76, AT_FDCWD = -100, O_ACCMODE = 3,
  PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, MAP_NORESERVE = 0x4000, MFD_CLOEXEC = 1,
  LIST_MAX = 256 << 20, FUSE_MAGIC = 0x65735546,
#if defined(__x86_64__)
  O_DIRECT = 0x4000
#else
  O_DIRECT = 0x10000
#endif
};

extern int *__errno_location(void);

static long answer(long r) {
  if (r >= 0) return r;
  *__errno_location() = (int)-r;
  return -1;
}

int getsockopt(int fd, int level, int name, void *value, unsigned *length) {
  long r = call6(SYS_getsockopt, fd, level, name, (word)value, (word)length, 0);
  int refused = r == -EOPNOTSUPP && level == SOL_SOCKET && (name == SO_PASSCRED || name == SO_PASSSEC || name == SO_PASSPIDFD);
  if (!refused) return (int)answer(r);
  for (unsigned i = 0; i < *length; i++) ((volatile char *)value)[i] = 0;
  return 0;
}

static const char *last_part(const char *path) {
  const char *last = path;
  for (const char *c = path; *c; c++)
    if (*c == '/') last = c + 1;
  return last;
}

/* Whether a path's last part is `maps` or `smaps`. */
static int lists_areas(const char *path) {
  const char *last = last_part(path);
  if (*last == 's') last++;
  return last[0] == 'm' && last[1] == 'a' && last[2] == 'p' && last[3] == 's' && last[4] == 0;
}

static int ends_with(const char *from, const char *to, const char *word) {
  const char *end = word;
  while (*end) end++;
  while (end > word && to > from)
    if (*--end != *--to) return 0;
  return end == word;
}

/* The place after the last digit of a line that begins `start-end `; 0 when it is another kind of line. */
static char *end_of_range(char *line, char *to) {
  int dashes = 0;
  for (; line < to && *line != ' '; line++) {
    if (*line == '-') dashes++;
    else if (!((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f'))) return 0;
  }
  return dashes == 1 ? line : 0;
}

/* Makes [vvar] reach to the end of [vvar_vclock] and leaves the latter out. Answers the new length. */
static long join_areas(char *text, long length) {
  char *to = text, *vvar = 0, *end = text + length;
  int skip = 0;
  for (char *line = text, *next; line < end; line = next) {
    for (next = line; next < end && *next != '\n'; next++) {}
    char *range = end_of_range(line, next);
    if (range) {
      skip = vvar && ends_with(line, next, "[vvar_vclock]");
      /* Both addresses have as many digits: they are neighbours. */
      for (char *from = range, *at = vvar; skip && from > line && from[-1] != '-';) *--at = *--from;
    }
    if (next < end) next++;
    if (skip) continue;
    if (range) vvar = ends_with(line, next - 1, "[vvar]") ? to + (range - line) : 0;
    while (line < next) *to++ = *line++;
  }
  return to - text;
}

/* The same list with the areas joined, in a file of its own; the given one is closed. */
static long joined(long fd) {
  char *text = (char *)call6(SYS_mmap, 0, LIST_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if ((long)text < 0 && (long)text > -4096) return fd;
  long length = 0, n;
  while (length < LIST_MAX && (n = call(SYS_read, fd, text + length, LIST_MAX - length, 0)) > 0) length += n;
  length = join_areas(text, length);
  long file = call(SYS_memfd_create, "areas", MFD_CLOEXEC, 0, 0);
  for (long at = 0; file >= 0 && at < length; at += n) {
    n = call(SYS_write, file, text + at, length - at, 0);
    if (n <= 0) break;
  }
  call(SYS_munmap, text, LIST_MAX, 0, 0);
  call(SYS_lseek, file, 0, 0, 0);
  call(SYS_close, fd, 0, 0, 0);
  return file;
}

extern char **environ;

static int same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

/* The value of HANGAR_RUN, or 0. */
static const char *run_dir(void) {
  const char *name = "HANGAR_RUN=";
  for (char **variable = environ; variable && *variable; variable++) {
    const char *at = *variable, *n = name;
    while (*n && *at == *n) at++, n++;
    if (!*n) return at;
  }
  return 0;
}

/* Where the file of this name really is; `room` holds the path if it is elsewhere. */
static const char *place(const char *path, char room[256]) {
  if (!same(path, "/run/criu.kdat") && !same(path, "/run/.criu.kdat")) return path;
  const char *dir = run_dir();
  if (!dir) return path;
  char *to = room, *last = room + 255 - sizeof "/.criu.kdat";
  while (*dir && to < last) *to++ = *dir++;
  if (*dir) return path;
  for (const char *name = path + 4; *name;) *to++ = *name++;
  *to = 0;
  return room;
}

int rename(const char *from, const char *to) {
  char a[256], b[256];
  return (int)answer(call(SYS_renameat, AT_FDCWD, place(from, a), AT_FDCWD, place(to, b)));
}

int unlink(const char *path) {
  char room[256];
  return (int)answer(call(SYS_unlinkat, AT_FDCWD, place(path, room), 0, 0));
}

/* Whether a file has the content of memory in it, such as pages-1.img. */
static int holds_pages(const char *path) {
  const char *at = last_part(path), *begin = "pages-";
  while (*begin && *at == *begin) at++, begin++;
  return !*begin;
}

static int on_fuse(long fd) {
  long stat[32];
  return call(SYS_fstatfs, fd, stat, 0, 0) == 0 && stat[0] == FUSE_MAGIC;
}

static int open_any(int folder, const char *path, int flags, unsigned mode) {
  char room[256];
  path = place(path, room);
  long fd = call(SYS_open_at, folder, path, flags, mode);
  if (fd < 0 || (flags & O_ACCMODE) != 0) return (int)answer(fd);
  if (lists_areas(path)) fd = joined(fd);
  else if (holds_pages(path) && on_fuse(fd)) {
    call(SYS_close, fd, 0, 0, 0);
    fd = call(SYS_open_at, folder, path, flags | O_DIRECT, mode);
  }
  return (int)answer(fd);
}

int openat64(int folder, const char *path, int flags, unsigned mode) { return open_any(folder, path, flags, mode); }

int open64(const char *path, int flags, unsigned mode) { return open_any(AT_FDCWD, path, flags, mode); }

#if defined(__x86_64__)
enum { PTRACE_PEEKUSER = 3, PTRACE_GETREGSET = 0x4204, PTRACE_SETREGSET = 0x4205, NT_X86_XSTATE = 0x202, EFAULT = 14 };
/* The header of the registers' area says which parts are in use: the first word of it. */
enum { AREA_MAX = 65536, IN_USE = 512 / 8, PARTS_KNOWN = 0xff };
struct span {
  void *base;
  word length;
};

/* Sets the known part of a task's registers and keeps the rest. */
static long set_part(long pid, const struct span *known) {
  static word area[AREA_MAX / 8];
  struct span all = {area, sizeof area};
  long r = call(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all);
  if (r < 0 || all.length <= known->length) return -EFAULT;
  word others = area[IN_USE] & ~(word)PARTS_KNOWN;
  for (word i = 0; i < known->length; i++) ((char *)area)[i] = ((const char *)known->base)[i];
  area[IN_USE] |= others;
  return call(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &all);
}

long ptrace(long request, long pid, void *address, void *data) {
  long value = 0;
  int peek = request > 0 && request <= PTRACE_PEEKUSER;
  long r = call(SYS_ptrace, request, pid, address, peek ? &value : data);
  if (r == -EFAULT && request == PTRACE_SETREGSET && (word)address == NT_X86_XSTATE) r = set_part(pid, data);
  if (r < 0) return answer(r);
  if (!peek) return r;
  *__errno_location() = 0;
  return value;
}
#endif
