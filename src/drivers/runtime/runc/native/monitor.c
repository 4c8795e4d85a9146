/*
 * Stands between the platform and one machine, for as long as the machine runs: it starts runc, keeps what the machine
 * writes in its log, and leaves word of how it ended. It goes on when the platform is gone.
 *
 *     monitor LOG LIMIT EXIT RUNC_PID OWN_PID CONTROL CONSOLE runc …
 *
 * LOG gets lines such as `2026-01-01T00:00:00.123456789+00:00 stdout F text`; P instead of F when the line goes on.
 * When it reaches LIMIT bytes it is set aside as LOG.1 and begun anew. A LOG.1 that nobody may execute was not archived yet: what
 * is lost with it is said in the first line of the new one, which has L and cannot be written by a machine. EXIT is written when the machine has ended, whole
 * or not at all: its exit code, 128 and the signal's number after a signal. RUNC_PID is the file in which runc says
 * which process it made, OWN_PID the one in which we say which we are. Whatever comes through the pipe CONTROL makes
 * us open the log anew, because somebody else has set it aside. CONSOLE is a socket by which runc hands over the
 * machine's terminal, or `-` when it has none.
 *
 * Descriptor 3 is told the number of the machine's first process as soon as runc is done, or -1 when runc failed.
 *
 * Signals are blocked, all of them: a machine whose output nobody takes dies of its next word.
 */
#include "syscalls.h"

enum {
  AT_FDCWD = -100, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0100, O_TRUNC = 01000, O_APPEND = 02000, O_NONBLOCK = 04000, O_CLOEXEC = 02000000,
  SEEK_END = 2, S_IFIFO = 0010000, F_SETFD = 2, F_SETFL = 4, SIG_BLOCK = 0, SIG_SETMASK = 2, SIGCHLD = 17, WNOHANG = 1, POLLIN = 1,
  PR_SET_CHILD_SUBREAPER = 36, AF_UNIX = 1, SOCK_STREAM = 1, SOL_SOCKET = 1, SCM_RIGHTS = 1, EAGAIN = 11, EINTR = 4,
  X_OK = 1, TOLD = 3, PIECE = 8192, BATCH = 32768, ENDED_MAX = 64, PATH_SIZE = 512, SOCKET_PATH = 108
};

struct poll { int fd; short wanted, found; };
struct part { const void *at; word size; };
struct time { long seconds, nanoseconds; };

enum { OUT, ERR, CHILDREN, CONTROL, CONSOLE, SOURCES };
static struct poll sources[SOURCES];

static char *log_path, *exit_path, *runc_pid_path, *own_pid_path, *control_path, *console_path, **command, **variables;
static long log_fd = -1, log_size, log_limit;
static word everything = ~0UL, before;
static char piece[PIECE], set_aside[PATH_SIZE], stamp[40];
/* Lines on their way to the log: a call for each would be most of what a line takes. */
static char batch[BATCH];
static word batched;

/* Processes that ended before we knew which of them is the machine. */
static struct { int pid, status; } ended[ENDED_MAX];
static int ended_count;

static word length(const char *text) {
  word n = 0;
  while (text[n]) n++;
  return n;
}

static char *append(char *to, const char *text) {
  while (*text) *to++ = *text++;
  *to = 0;
  return to;
}

/* At least so many digits. */
static char *append_number(char *to, long number, int width) {
  char digits[24], *at = digits + sizeof digits - 1;
  *at = 0;
  for (long rest = number < 0 ? -number : number; rest > 0 || width > 0; rest /= 10, width--) *--at = (char)('0' + rest % 10);
  if (number < 0) *--at = '-';
  return append(to, at);
}

static long number_in(const char *text) {
  long n = 0;
  for (; *text >= '0' && *text <= '9'; text++) n = n * 10 + (*text - '0');
  return n;
}

static void leave(int code) {
  for (;;) call(SYS_exit_group, code, 0, 0, 0);
}

static void broken(const char *what, long reason) {
  char text[PATH_SIZE];
  char *end = append(append_number(append(append(text, "monitor: "), what), -reason, 1), "\n");
  call(SYS_write, 2, text, end - text, 0);
  leave(1);
}

static long checked(long result, const char *what) {
  if (result < 0) broken(what, result);
  return result;
}

static long open_file(const char *path, int flags) { return call(SYS_open_at, AT_FDCWD, path, flags | O_CLOEXEC, 0600); }

static void write_number(const char *path, long number) {
  char text[24];
  char *end = append_number(text, number, 1);
  long fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd < 0) return;
  call(SYS_write, fd, text, end - text, 0);
  call(SYS_close, fd, 0, 0, 0);
}

static void open_log(void) {
  if (log_fd >= 0) call(SYS_close, log_fd, 0, 0, 0);
  log_fd = open_file(log_path, O_WRONLY | O_CREAT | O_APPEND);
  log_size = log_fd < 0 ? 0 : call(SYS_lseek, log_fd, 0, SEEK_END, 0);
}

/* What the first lines of the log and of the one that was set aside tell: it is lost with them, and told again. */
static long told, told_aside;

/* Bytes that are lost when the log that was set aside is replaced. */
static long lost_bytes(void) {
  long fd = open_file(set_aside, 0), size = 0;
  if (fd < 0) return 0;
  /* Who archived it has marked it; a root may execute only what has the mark. */
  if (call(SYS_faccessat, AT_FDCWD, set_aside, X_OK, 0) < 0) size = call(SYS_lseek, fd, 0, SEEK_END, 0);
  call(SYS_close, fd, 0, 0, 0);
  return size > 0 ? size + told_aside : 0;
}

static void is_set_aside(void) {
  told_aside = told;
  told = 0;
}

static void begin_anew(void) {
  long lost = lost_bytes();
  char text[PATH_SIZE];
  call(SYS_renameat, AT_FDCWD, log_path, AT_FDCWD, set_aside);
  is_set_aside();
  open_log();
  if (lost == 0 || log_fd < 0) return;
  char *end = append(append_number(append(append(text, stamp), "stderr L hangar: "), lost, 1),
                     " bytes of this log were lost here, because they were written faster than it could be archived\n");
  long written = call(SYS_write, log_fd, text, end - text, 0);
  if (written > 0) log_size += written;
  told = lost;
}

/* The time as a line begins with it. The year counts from March here, so that the odd day comes last. */
static void take_time(void) {
  struct time now;
  call(SYS_clock_gettime, 0, &now, 0, 0);
  long days = now.seconds / 86400 + 719468, second = now.seconds % 86400;
  long era = days / 146097, day_of_era = days % 146097;
  long year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  long day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100), month = (5 * day_of_year + 2) / 153;
  long day = day_of_year - (153 * month + 2) / 5 + 1, year = year_of_era + era * 400 + (month >= 10);
  char *to = append_number(stamp, year, 4);
  to = append_number(append(to, "-"), month < 10 ? month + 3 : month - 9, 2);
  to = append_number(append(to, "-"), day, 2);
  to = append_number(append(to, "T"), second / 3600, 2);
  to = append_number(append(to, ":"), second / 60 % 60, 2);
  to = append_number(append(to, ":"), second % 60, 2);
  to = append_number(append(to, "."), now.nanoseconds, 9);
  append(to, "+00:00 ");
}

/* A disk that is full loses lines; it does not stop the machine. */
static void write_batch(void) {
  word size = batched;
  batched = 0;
  if (size > 0 && log_fd < 0) open_log();
  if (size == 0 || log_fd < 0) return;
  long written = call(SYS_write, log_fd, batch, size, 0);
  /* What is cut short is ended, so that the next line is one of its own. */
  if (written > 0 && (word)written < size) written += call(SYS_write, log_fd, "\n", 1, 0) > 0;
  if (written > 0) log_size += written;
}

static void add(const char *text, word size) {
  for (word at = 0; at < size; at++) batch[batched++] = text[at];
}

/* Until `write_batch` it is not in the log. */
static void add_line(const char *stream, const char *kind, const char *text, word size) {
  word total = length(stamp) + length(stream) + length(kind) + size + 1;
  if (log_size + (long)(batched + total) > log_limit) {
    write_batch();
    begin_anew();
  }
  if (batched + total > BATCH) write_batch();
  add(stamp, length(stamp));
  add(stream, length(stream));
  add(kind, length(kind));
  add(text, size);
  add("\n", 1);
}

/* Whether the last line of a stream has not ended yet. */
static int goes_on[2];

/* Takes what is there; 0 when that is all there will ever be. */
static int take(int which) {
  long size = call(SYS_read, sources[which].fd, piece, PIECE, 0);
  if (size == -EAGAIN || size == -EINTR) return 1;
  /* A terminal answers with an error when its last user is gone. */
  if (size <= 0) return 0;
  take_time();
  const char *stream = which == OUT ? "stdout " : "stderr ";
  for (word at = 0, end; at < (word)size; at = end + 1) {
    for (end = at; end < (word)size && piece[end] != '\n'; end++);
    goes_on[which] = end == (word)size;
    add_line(stream, goes_on[which] ? "P " : "F ", piece + at, end - at);
  }
  write_batch();
  return 1;
}

static void take_or_close(int which) {
  if (take(which)) return;
  call(SYS_close, sources[which].fd, 0, 0, 0);
  sources[which].fd = -1;
}

/* Whatever is still in a pipe of a machine that has ended. */
static void take_rest(int which) {
  struct poll one = {sources[which].fd, POLLIN, 0};
  struct time none = {0, 0};
  while (one.fd >= 0 && call6(SYS_ppoll, (word)&one, 1, (word)&none, 0, 0, 0) > 0 && take(which));
  /* A last line without an end is ended here, or the next boot's first line would be taken for the rest of it. */
  if (!goes_on[which]) return;
  goes_on[which] = 0;
  take_time();
  add_line(which == OUT ? "stdout " : "stderr ", "F ", "", 0);
  write_batch();
}

static void tell(long number) {
  char text[24];
  char *end = append(append_number(text, number, 1), "\n");
  call(SYS_write, TOLD, text, end - text, 0);
  call(SYS_close, TOLD, 0, 0, 0);
}

/* The machine is over: the rest of its output first, so that whoever reads the word has all of it. */
static void leave_word(int status) {
  take_rest(OUT);
  take_rest(ERR);
  char fresh[PATH_SIZE];
  append(append(fresh, exit_path), ".new");
  write_number(fresh, status & 0x7f ? 128 + (status & 0x7f) : (status >> 8) & 0xff);
  call(SYS_renameat, AT_FDCWD, fresh, AT_FDCWD, exit_path);
  leave(0);
}

static long machine_pid(void) {
  char text[24];
  long fd = open_file(runc_pid_path, 0);
  if (fd < 0) return 0;
  long size = call(SYS_read, fd, text, sizeof text - 1, 0);
  call(SYS_close, fd, 0, 0, 0);
  text[size > 0 ? size : 0] = 0;
  return number_in(text);
}

static void runc_ended(int status, int *machine) {
  *machine = status == 0 ? (int)machine_pid() : 0;
  tell(*machine > 0 ? *machine : -1);
  if (*machine > 0) return;
  take_rest(OUT);
  take_rest(ERR);
  leave(1);
}

/* Whoever is left behind by runc becomes our child: the machine, and helpers of runc's that mean nothing. */
static void reap(int *runc, int *machine) {
  int status;
  for (long pid; (pid = call(SYS_wait4, -1, &status, WNOHANG, 0)) > 0;) {
    if (pid == *machine) leave_word(status);
    if (pid == *runc) {
      *runc = 0;
      runc_ended(status, machine);
      for (int i = 0; i < ended_count; i++)
        if (ended[i].pid == *machine) leave_word(ended[i].status);
    } else if (*runc && ended_count < ENDED_MAX) {
      ended[ended_count].pid = (int)pid;
      ended[ended_count++].status = status;
    }
  }
}

static void open_console(void) {
  struct { unsigned short family; char path[SOCKET_PATH]; } address;
  if (length(console_path) >= SOCKET_PATH) broken("the path of the console is too long ", 0);
  address.family = AF_UNIX;
  append(address.path, console_path);
  call(SYS_unlinkat, AT_FDCWD, console_path, 0, 0);
  long fd = checked(call(SYS_socket, AF_UNIX, SOCK_STREAM | O_CLOEXEC, 0, 0), "console ");
  checked(call(SYS_bind, fd, &address, sizeof address.family + length(console_path) + 1, 0), "console ");
  checked(call(SYS_listen, fd, 1, 0, 0), "console ");
  sources[CONSOLE].fd = (int)fd;
}

/* runc connects, sends the terminal, and that is all. */
static void take_console(void) {
  struct { word size; int level, type, fd, unused; } control;
  char name[256];
  struct part data = {name, sizeof name};
  struct { void *name; unsigned name_size; struct part *data; word data_count; void *control; word control_size; int flags; } message;
  message.name = 0;
  message.name_size = 0;
  message.data = &data;
  message.data_count = 1;
  message.control = &control;
  message.control_size = sizeof control;
  long from = call(SYS_accept4, sources[CONSOLE].fd, 0, 0, O_CLOEXEC);
  long got = from < 0 ? from : call(SYS_recvmsg, from, &message, 0x40000000, 0);
  if (got >= 0 && message.control_size >= 20 && control.level == SOL_SOCKET && control.type == SCM_RIGHTS) {
    call(SYS_fcntl, control.fd, F_SETFL, O_NONBLOCK, 0);
    sources[OUT].fd = control.fd;
  }
  if (from >= 0) call(SYS_close, from, 0, 0, 0);
  call(SYS_close, sources[CONSOLE].fd, 0, 0, 0);
  sources[CONSOLE].fd = -1;
  call(SYS_unlinkat, AT_FDCWD, console_path, 0, 0);
}

static void open_control(void) {
  call(SYS_mknodat, AT_FDCWD, control_path, S_IFIFO | 0600, 0);
  /* Open for writing as well: otherwise it is at its end whenever nobody else writes. */
  sources[CONTROL].fd = (int)open_file(control_path, O_RDWR | O_NONBLOCK);
}

static long start_runc(void) {
  int out[2], err[2];
  int terminal = console_path[0] != '-';
  if (terminal) open_console();
  else {
    checked(call(SYS_pipe2, out, O_CLOEXEC, 0, 0), "pipe ");
    checked(call(SYS_pipe2, err, O_CLOEXEC, 0, 0), "pipe ");
    /* Programs open /dev/stdout by its name too, as nginx does for its logs, and the pipes belong to a user outside. */
    call(SYS_fchmod, out[1], 0666, 0, 0);
    call(SYS_fchmod, err[1], 0666, 0, 0);
  }
  long pid = checked(call6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0), "runc ");
  if (pid == 0) {
    if (!terminal) {
      call(SYS_dup3, out[1], 1, 0, 0);
      call(SYS_dup3, err[1], 2, 0, 0);
    }
    call(SYS_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
    broken("runc cannot be run ", call(SYS_execve, command[0], command, variables, 0));
  }
  if (terminal) return pid;
  sources[OUT].fd = out[0];
  sources[ERR].fd = err[0];
  for (int i = OUT; i <= ERR; i++) call(SYS_fcntl, sources[i].fd, F_SETFL, O_NONBLOCK, 0);
  call(SYS_close, out[1], 0, 0, 0);
  call(SYS_close, err[1], 0, 0, 0);
  return pid;
}

static void watch(int runc) {
  int machine = 0;
  char skipped[128];
  for (;;) {
    if (call6(SYS_ppoll, (word)sources, SOURCES, 0, 0, 0, 0) < 0) continue;
    for (int i = OUT; i <= ERR; i++)
      if (sources[i].found) take_or_close(i);
    if (sources[CONSOLE].found) take_console();
    if (sources[CONTROL].found) {
      call(SYS_read, sources[CONTROL].fd, skipped, sizeof skipped, 0);
      is_set_aside();
      open_log();
    }
    if (sources[CHILDREN].found) {
      call(SYS_read, sources[CHILDREN].fd, skipped, sizeof skipped, 0);
      reap(&runc, &machine);
    }
  }
}

__attribute__((used)) static void run(word *stack) {
  char **args = (char **)(stack + 1);
  if (stack[0] < 9) broken("it takes seven words and a command ", 0);
  log_path = args[1];
  log_limit = number_in(args[2]);
  exit_path = args[3];
  runc_pid_path = args[4];
  own_pid_path = args[5];
  control_path = args[6];
  console_path = args[7];
  command = args + 8;
  variables = args + stack[0] + 1;
  for (int i = 1; i < 8; i++)
    if (length(args[i]) > PATH_SIZE - 8) broken("a path is too long ", 0);
  append(append(set_aside, log_path), ".1");
  /* Whoever started us need not wait for us, and does not have to bury us. */
  if (checked(call6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0), "fork ") > 0) leave(0);
  call(SYS_sigprocmask, SIG_BLOCK, &everything, &before, sizeof everything);
  call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0);
  call(SYS_fcntl, TOLD, F_SETFD, 1, 0);
  for (int i = 0; i < SOURCES; i++) {
    sources[i].fd = -1;
    sources[i].wanted = POLLIN;
  }
  word children = 1UL << (SIGCHLD - 1);
  sources[CHILDREN].fd = (int)checked(call(SYS_signalfd4, -1, &children, sizeof children, O_NONBLOCK | O_CLOEXEC), "signals ");
  write_number(own_pid_path, call(SYS_getpid, 0, 0, 0, 0));
  open_log();
  open_control();
  watch((int)start_runc());
}

/* The words given to the program lie on the stack as the kernel left it. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call run\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl run\n");
#endif
