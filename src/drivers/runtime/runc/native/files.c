/*
 * Works on files of the machine, for those who cannot rely on its programs: `/.svc/files ROOT operation words …`. ROOT is `/`;
 * a simulated machine has another one. Paths are absolute. The answer is fields that end with a zero byte, or the bytes of a
 * file. When it fails it ends with 1, and its standard error has the number of the error and what could not be done.
 *
 * It runs in the machine's own namespaces with the rights of its root, so nothing that it does reaches further than what any
 * program there can do. Every path is resolved below ROOT, and what is found is used through its descriptor.
 */
#include "file-tree.h"
#include "file-watch.h"

/* `read PATH` */
static void op_read(char **words) {
  static char piece[64 * 1024];
  struct about about;
  /* A pipe without a writer must not hold us up. */
  long fd = resolve(words[0], O_RDONLY | O_NONBLOCK);
  check(fd, "open");
  check(look((int)fd, "", AT_EMPTY_PATH, &about), "open");
  if (kind(&about) != S_IFREG) check(kind(&about) == S_IFDIR ? -EISDIR : -EINVAL, "read");
  for (;;) {
    long n = call(SYS_read, fd, piece, sizeof piece, 0);
    if (n == -EINTR) continue;
    check(n, "read");
    if (n == 0) return;
    write_all(1, piece, (word)n);
  }
}

static void list(int fd, word at, int recursive, int depth) {
  struct reading reading = {.fd = fd};
  struct about about;
  check_depth(depth, "scandir");
  for (const char *name; (name = next_name(&reading));) {
    if (look(fd, name, AT_SYMLINK_NOFOLLOW, &about) < 0) continue;
    word end = descend(at, name);
    show(&about, relative);
    if (!recursive || kind(&about) != S_IFDIR) continue;
    long inner = open_folder(fd, name);
    if (inner < 0) continue;
    list((int)inner, end, recursive, depth + 1);
    call(SYS_close, inner, 0, 0, 0);
  }
}

/* `list PATH RECURSIVE`: itself, with an empty name, and what is in it. */
static void op_list(char **words) {
  struct about about;
  long fd = resolve(words[0], O_PATH);
  check(fd, "scandir");
  check(look((int)fd, "", AT_EMPTY_PATH, &about), "scandir");
  show(&about, "");
  if (kind(&about) != S_IFDIR) return;
  long folder = call(SYS_open_at, fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  check(folder, "scandir");
  list((int)folder, 0, words[1][0] == '1', 0);
}

/* `stat PATH`: the entry itself, and what a link points to. */
static void op_stat(char **words) {
  static char link[PATH_BYTES];
  struct about about;
  long fd = resolve(words[0], O_PATH | O_NOFOLLOW);
  check(fd, "stat");
  check(look((int)fd, "", AT_EMPTY_PATH, &about), "stat");
  show(&about, "");
  if (kind(&about) == S_IFLNK) call(SYS_readlinkat, fd, "", link, sizeof link - 1);
  field(link);
}

/* `rename SOURCE DEST` */
static void op_rename(char **words) {
  struct place from = place_of(words[0], "rename");
  struct place to = place_of(words[1], "rename");
  check(call(SYS_renameat, from.dir, from.name, to.dir, to.name), "rename");
  check(call(SYS_fsync, to.dir, 0, 0, 0), "rename");
}

static const struct { const char *name; word words; void (*work)(char **words); } OPERATIONS[] = {
    {"read", 1, op_read},     {"list", 2, op_list},   {"stat", 1, op_stat},   {"write", 4, op_write}, {"delete", 2, op_delete},
    {"rename", 2, op_rename}, {"copy", 4, op_copy},   {"chmod", 3, op_chmod}, {"chown", 4, op_chown}, {"watch", 2, op_watch},
};

/* The stack as the kernel leaves it: number of words, words, zero, variables, zero. */
__attribute__((used, noreturn)) void main_of_files(word *stack) {
  char **words = (char **)(stack + 1);
  call(SYS_umask, 0, 0, 0, 0);
  if (stack[0] >= 3) {
    long fd = call(SYS_open_at, AT_FDCWD, words[1], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    check(fd, "open");
    root = (int)fd;
    for (word n = 0; n < sizeof OPERATIONS / sizeof *OPERATIONS; n++) {
      if (!same(words[2], OPERATIONS[n].name) || stack[0] - 3 < OPERATIONS[n].words) continue;
      OPERATIONS[n].work(words + 3);
      flush();
      leave(0);
    }
  }
  say("22 run\n");
  leave(1);
  __builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call main_of_files\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl main_of_files\n");
#endif
