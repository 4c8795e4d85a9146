/*
 * Connects to a port of the machine from inside, where programs on loopback are reached, too: `/.svc/dial PORT`. A zero byte on
 * the standard output says that it is connected; then come the other side's bytes, and the standard input is sent to it. Each
 * direction is a process of its own, so that one that waits holds up no other.
 */
#include "say.h"

enum { AF_INET = 2, AF_INET6 = 10, SOCK_STREAM = 1, SHUT_WR = 1, SIGCHLD = 17, EINTR = 4 };

struct address4 { unsigned short family, port; unsigned char host[4], unused[8]; };
struct address6 { unsigned short family, port; unsigned flow; unsigned char host[16]; unsigned scope; };

static int carry(int from, int to) {
  static char piece[64 * 1024];
  for (;;) {
    long n = call(SYS_read, from, piece, sizeof piece, 0);
    if (n == -EINTR) continue;
    if (n <= 0) return n == 0;
    for (long at = 0; at < n;) {
      long wrote = call(SYS_write, to, piece + at, n - at, 0);
      if (wrote == -EINTR) continue;
      if (wrote < 0) return 0;
      at += wrote;
    }
  }
}

static long dial(unsigned short port) {
  struct address4 four = {.family = AF_INET, .port = port, .host = {127, 0, 0, 1}};
  struct address6 six = {.family = AF_INET6, .port = port, .host = {[15] = 1}};
  long socket = call(SYS_socket, AF_INET, SOCK_STREAM, 0, 0);
  if (socket >= 0 && call(SYS_connect, socket, &four, sizeof four, 0) == 0) return socket;
  call(SYS_close, socket, 0, 0, 0);
  socket = call(SYS_socket, AF_INET6, SOCK_STREAM, 0, 0);
  long r = socket < 0 ? socket : call(SYS_connect, socket, &six, sizeof six, 0);
  return r < 0 ? r : socket;
}

/* The stack as the kernel leaves it: number of words, words, zero, variables, zero. */
__attribute__((used, noreturn)) void main_of_dial(word *stack) {
  char **words = (char **)(stack + 1);
  unsigned port = 0;
  for (const char *c = stack[0] > 1 ? words[1] : ""; *c >= '0' && *c <= '9'; c++) port = port * 10 + (unsigned)(*c - '0');
  long socket = dial((unsigned short)((port & 0xff) << 8 | port >> 8));
  if (socket < 0) {
    say("hangar: nothing accepts connections there\n");
    leave(1);
  }
  call(SYS_write, 1, "", 1, 0);
  long pid = call6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (pid < 0) leave(1);
  if (pid == 0) {
    call(SYS_close, 0, 0, 0, 0);
    leave(carry((int)socket, 1) ? 0 : 1);
  }
  /* The other side's end is seen when nobody has the output open any more. */
  call(SYS_close, 1, 0, 0, 0);
  carry(0, (int)socket);
  call(SYS_shutdown, socket, SHUT_WR, 0, 0);
  while (call(SYS_wait4, pid, 0, 0, 0) == -EINTR) {}
  leave(0);
  __builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call main_of_dial\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl main_of_dial\n");
#endif
