/*
 * Process 1 of every machine. It starts the processes that /.svc/boot names, hands signals on to them, reaps what is
 * left behind, and ends as soon as one of them does, with that one's code: then the kernel ends everything else.
 *
 * Signals are blocked from the first instruction and taken one by one, so none is lost, however early it comes.
 *
 * A sidecar, of which there is at most one, runs before and after the others: they wait until it writes to descriptor 3,
 * signals from outside are not for it, and it is asked to end when they have. When it ends first, they end with it.
 *
 * The file holds strings, each ended by a zero byte, for one process after the other:
 *     1 for a sidecar or 0, uid, gid, number of further groups, groups …, folder, number of words, words …,
 *     number of variables, variables …
 */
#include "program.h"

enum { AT_FDCWD = -100, SEEK_END = 2, SIGKILL = 9, SIGTERM = 15, WNOHANG = 1, POLLIN = 1, READY = 3, PROCESSES_MAX = 64, GROUPS_MAX = 64, LAST_SECONDS = 10 };

struct process {
  unsigned sidecar, uid, gid, group_count, groups[GROUPS_MAX];
  char *folder, **words, **variables;
  int pid;
};
struct wait_time { long seconds, nanoseconds; };
struct waited { int descriptor; short wanted, found; };

static struct process processes[PROCESSES_MAX];
static int count, has_sidecar;
/* Processes that run, and sidecars. */
static int left[2];
/* The ends of the pipe through which the sidecar says that it is ready: to read, to write. */
static int ready[2];
static char *at, *end;
static word everything = ~0UL, before;

static char *next_text(void) {
  char *text = at;
  while (at < end && *at) at++;
  if (at >= end) broken("/.svc/boot is cut short");
  at++;
  return text;
}

static unsigned next_number(void) {
  unsigned n = 0;
  for (char *text = next_text(); *text; text++) n = n * 10 + (unsigned)(*text - '0');
  return n;
}

static char **next_list(void) {
  unsigned n = next_number();
  char **list = memory((n + 1) * sizeof *list);
  for (unsigned i = 0; i < n; i++) list[i] = next_text();
  return list;
}

static void read_boot(void) {
  long fd = call(SYS_open_at, AT_FDCWD, "/.svc/boot", 0, 0);
  if (fd < 0) broken("/.svc/boot cannot be read");
  long size = call(SYS_lseek, fd, 0, SEEK_END, 0);
  if (size <= 0) broken("/.svc/boot is empty");
  call(SYS_lseek, fd, 0, 0, 0);
  at = memory(size);
  end = at + size;
  for (char *to = at; to < end;) {
    long n = call(SYS_read, fd, to, end - to, 0);
    if (n <= 0) broken("/.svc/boot cannot be read");
    to += n;
  }
  /* It is removed as soon as we run, and what is removed and open cannot be brought back by a resume. */
  call(SYS_close, fd, 0, 0, 0);
  while (at < end) {
    if (count == PROCESSES_MAX) broken("there are more than 64 processes");
    struct process *p = &processes[count++];
    p->sidecar = next_number() != 0;
    has_sidecar |= p->sidecar;
    p->uid = next_number();
    p->gid = next_number();
    p->group_count = next_number();
    if (p->group_count > GROUPS_MAX) broken("a user is in more than 64 groups");
    for (unsigned i = 0; i < p->group_count; i++) p->groups[i] = next_number();
    p->folder = next_text();
    p->words = next_list();
    p->variables = next_list();
  }
}

/* In the process that waits. Other signals than those that are blocked for its program end it meanwhile. */
static void wait_for_sidecar(void) {
  call(SYS_close, ready[1], 0, 0, 0);
  struct waited one = {ready[0], POLLIN, 0};
  while (!(one.found & POLLIN)) {
    /* It has ended without: so does the machine. Without descriptors this only waits for the signal. */
    int gone = one.found != 0;
    call6(SYS_ppoll, (word)&one, !gone, 0, (word)&before, sizeof before, 0);
  }
  call(SYS_close, ready[0], 0, 0, 0);
}

static void take_ready(void) {
  call(SYS_close, ready[0], 0, 0, 0);
  if (ready[1] == READY) return;
  call(SYS_dup3, ready[1], READY, 0, 0);
  call(SYS_close, ready[1], 0, 0, 0);
}

static void become(struct process *p) {
  call(SYS_setpgid, 0, 0, 0, 0);
  /* The first process has the terminal, if there is one. SIGTTOU is blocked here, so this does not stop us. */
  int group = (int)call(SYS_getpid, 0, 0, 0, 0);
  if (p == processes) call(SYS_ioctl, 0, TIOCSPGRP, &group, 0);
  if (p->sidecar) take_ready();
  else if (has_sidecar) wait_for_sidecar();
  if (call(SYS_setgroups, p->group_count, p->groups, 0, 0) < 0 || call(SYS_setgid, p->gid, 0, 0, 0) < 0 || call(SYS_setuid, p->uid, 0, 0, 0) < 0)
    broken("the process cannot become its user");
  if (call(SYS_chdir, p->folder, 0, 0, 0) < 0) {
    say("hangar: no folder ");
    say(p->folder);
    say("\n");
    leave(126);
  }
  call(SYS_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  run_or_leave(p->words, p->variables);
}

static void start(struct process *p) {
  long pid = call6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (pid < 0) broken("a process cannot be made (limit of processes?)");
  if (pid == 0) become(p);
  p->pid = (int)pid;
  left[p->sidecar]++;
  call(SYS_setpgid, pid, pid, 0, 0);
}

static void start_all(void) {
  if (has_sidecar && call(SYS_pipe2, ready, 0, 0, 0) < 0) broken("a pipe cannot be made (limit of open files?)");
  for (int i = 0; i < count; i++) start(&processes[i]);
  if (!has_sidecar) return;
  call(SYS_close, ready[0], 0, 0, 0);
  call(SYS_close, ready[1], 0, 0, 0);
}

static void tell(unsigned sidecar, int number) {
  for (int i = 0; i < count; i++)
    if (processes[i].pid && processes[i].sidecar == sidecar) call(SYS_kill, processes[i].pid, number, 0, 0);
}

/* Reaps; answers the exit code of the first of our processes that ended, or -1. */
static int reap(void) {
  int code = -1, status;
  for (long pid; (pid = call(SYS_wait4, -1, &status, WNOHANG, 0)) > 0;) {
    for (int i = 0; i < count; i++) {
      if (processes[i].pid != pid) continue;
      processes[i].pid = 0;
      left[processes[i].sidecar]--;
      if (code < 0) code = code_of(status);
    }
  }
  return code;
}

__attribute__((used, noreturn)) void main_of_machine(void) {
  call(SYS_sigprocmask, SIG_BLOCK, &everything, &before, sizeof everything);
  read_boot();
  start_all();
  int code = -1;
  while (left[0] + left[1] > 0) {
    /* Once one has ended the others are asked to, and are given a while. */
    struct wait_time last = {LAST_SECONDS, 0};
    long number = call(SYS_sigtimedwait, &everything, 0, code < 0 ? 0 : &last, sizeof everything);
    if (number == SIGCHLD) {
      int ended = reap();
      if (code < 0 && ended >= 0) {
        code = ended;
        tell(0, SIGTERM);
      }
      if (code >= 0 && left[0] == 0) tell(1, SIGTERM);
    } else if (number > 0) {
      tell(0, (int)number);
    } else if (code >= 0) {
      break;
    }
  }
  leave(code);
  __builtin_unreachable();
}

/* The stack must be aligned as the calling convention says; nothing of it is needed. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n and $-16, %rsp\n call main_of_machine\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n bl main_of_machine\n");
#endif
