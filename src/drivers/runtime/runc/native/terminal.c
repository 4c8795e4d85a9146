/*
 * Runs a program in a folder of the machine, on a terminal or not: `/.svc/terminal open FOLDER program words …` is started
 * by runc with the terminal as its input and output. runc can do this itself only while it stays and stands in between;
 * then it changes what passes through (line ends), and is a program of 10 MB per terminal. This one makes the terminal that
 * of its session, waits for the program, and leaves the exit code, as text, in descriptor 3, since nobody outside is its
 * parent. `/.svc/terminal run FOLDER program words …` is the same without a terminal, with pipes for its streams.
 * With `open-in` and `run-in` the folder must exist. `/.svc/terminal exec FOLDER program words …` has nothing to report: it becomes the program.
 *
 * The folder is entered here and not by runc: runc still has files of the host open when it changes to a folder that the
 * image names (CVE-2024-21626), and here nothing of the host is left. A folder that is not below the machine's root is
 * refused all the same.
 */
#include "program.h"

enum { TIOCSCTTY = 0x540e, REPORT = 3, EINTR = 4, PATH_BYTES = 4097 };

static word everything = ~0UL, before;

/* A folder of the image that is gone is no reason to refuse a shell, which begins in the root then; one that was asked for is. */
static void enter(const char *folder, int wanted) {
  char path[PATH_BYTES];
  if (call(SYS_chdir, folder, 0, 0, 0) < 0) {
    if (wanted) {
      say("hangar: no folder ");
      say(folder);
      say("\n");
      leave(126);
    }
    say("hangar: no folder ");
    say(folder);
    say(", this starts in /\n");
    if (call(SYS_chdir, "/", 0, 0, 0) < 0) broken("the root cannot be entered");
  }
  /* For what is not below the root the kernel answers "(unreachable)…", and an error for what was removed. */
  if (call(SYS_getcwd, path, sizeof path, 0, 0) < 2 || path[0] != '/') broken("the working directory is not in the machine");
}

static void become(char **words, char **variables) {
  call(SYS_close, REPORT, 0, 0, 0);
  int group = (int)call(SYS_getpid, 0, 0, 0, 0);
  call(SYS_setpgid, 0, 0, 0, 0);
  /* SIGTTOU is blocked here, so this does not stop us. */
  call(SYS_ioctl, 0, TIOCSPGRP, &group, 0);
  call(SYS_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  run_or_leave(words, variables);
}

static void report(int code) {
  char text[4];
  word n = 0;
  if (code >= 100) text[n++] = (char)('0' + code / 100);
  if (code >= 10) text[n++] = (char)('0' + code / 10 % 10);
  text[n++] = (char)('0' + code % 10);
  text[n++] = '\n';
  call(SYS_write, REPORT, text, n, 0);
}

static int has_dash(const char *text) {
  while (*text && *text != '-') text++;
  return *text == '-';
}

/* The stack as the kernel leaves it: number of words, words, zero, variables, zero. */
__attribute__((used, noreturn)) void main_of_terminal(word *stack) {
  char **given = (char **)(stack + 1), **words = given + 3, **variables = given + stack[0] + 1;
  if (stack[0] < 4) broken("which program?");
  enter(given[2], has_dash(given[1]));
  if (given[1][0] == 'e') run_or_leave(words, variables);
  call(SYS_setsid, 0, 0, 0, 0);
  int has_terminal = given[1][0] == 'o';
  if (has_terminal) call(SYS_ioctl, 0, TIOCSCTTY, 0, 0);
  call(SYS_sigprocmask, SIG_BLOCK, &everything, &before, sizeof everything);
  long pid = call6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (pid < 0) broken("a process cannot be made (limit of processes?)");
  if (pid == 0) become(words, variables);
  /* Pipes are the program's alone, so that it can end its output, and its input breaks when it has left. */
  if (!has_terminal)
    for (int fd = 0; fd < REPORT; fd++) call(SYS_close, fd, 0, 0, 0);
  /* From here on a hang-up ends us, and the kernel then tells the program. */
  call(SYS_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  int status = 0;
  while (call(SYS_wait4, pid, &status, 0, 0) == -EINTR) {}
  report(code_of(status));
  leave(code_of(status));
  __builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call main_of_terminal\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl main_of_terminal\n");
#endif
