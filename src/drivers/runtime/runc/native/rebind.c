/*
 * Shows files of the host at the same paths in a machine that runs, in place of what is mounted there.
 *
 *     rebind DIR PID PATH …
 *
 * DIR/PATH of the host is mounted at PATH in the mount namespace of process PID: read-only, nosuid, nodev, private. What
 * is mounted at PATH is unmounted first, even when the file system behind it no longer answers. No program of the
 * machine is run, and PATH must be one that the machine cannot replace: below its /proc or /sys.
 */
#include "say.h"

enum {
  AT_FDCWD = -100, AT_EMPTY_PATH = 0x1000, O_CLOEXEC = 02000000, CLONE_NEWNS = 0x20000, OPEN_TREE_CLONE = 1,
  MOVE_MOUNT_F_EMPTY_PATH = 4, MNT_DETACH = 2, UMOUNT_NOFOLLOW = 8, MOUNT_ATTR_RDONLY = 1, MOUNT_ATTR_NOSUID = 2,
  MOUNT_ATTR_NODEV = 4, MS_PRIVATE = 1 << 18, FILES_MAX = 32, PATH_SIZE = 4096
};

struct mount_attr { unsigned long long set, clear, propagation, userns; };

static long checked(long result, const char *what) {
  if (result >= 0) return result;
  char digits[24], *at = digits + sizeof digits - 1;
  *at = 0;
  for (long number = -result; number; number /= 10) *--at = (char)('0' + number % 10);
  say("rebind: ");
  say(what);
  say(": errno ");
  say(at);
  say("\n");
  leave(1);
  return result;
}

static char path[PATH_SIZE];

static const char *joined(const char *first, const char *second, const char *third) {
  const char *parts[] = {first, second, third};
  word size = 0;
  for (int i = 0; i < 3; i++) {
    if (size + length(parts[i]) >= PATH_SIZE) checked(-36, "the path is too long");
    for (const char *c = parts[i]; *c; c++) path[size++] = *c;
  }
  path[size] = 0;
  return path;
}

/* A mount of its own that is at no place yet. */
static long copy_of(const char *dir, const char *file) {
  struct mount_attr wanted = {.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE};
  long fd = checked(call(SYS_open_tree, AT_FDCWD, joined(dir, file, ""), OPEN_TREE_CLONE | O_CLOEXEC, 0), file);
  checked(call6(SYS_mount_setattr, fd, (word) "", AT_EMPTY_PATH, (word)&wanted, sizeof wanted, 0), file);
  return fd;
}

__attribute__((used)) static void run(word *stack) {
  char **args = (char **)(stack + 1);
  long files = (long)stack[0] - 3;
  if (files < 1 || files > FILES_MAX) checked(-22, "it takes a folder, a process and up to 32 files");
  long copies[FILES_MAX];
  for (long i = 0; i < files; i++) copies[i] = copy_of(args[1], args[3 + i]);
  long machine = checked(call(SYS_open_at, AT_FDCWD, joined("/proc/", args[2], "/ns/mnt"), O_CLOEXEC, 0), "the machine");
  checked(call(SYS_setns, machine, CLONE_NEWNS, 0, 0), "the machine's mount namespace");
  for (long i = 0; i < files; i++) {
    const char *at = args[3 + i];
    call(SYS_umount2, at, MNT_DETACH | UMOUNT_NOFOLLOW, 0, 0);
    checked(call6(SYS_move_mount, copies[i], (word) "", AT_FDCWD, (word)at, MOVE_MOUNT_F_EMPTY_PATH, 0), at);
  }
  leave(0);
}

/* The words given to the program lie on the stack as the kernel left it. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call run\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl run\n");
#endif
