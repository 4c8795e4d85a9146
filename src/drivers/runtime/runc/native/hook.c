/*
 * Wires a machine's network. runc runs it when the machine's namespaces are there and none of its processes has begun,
 * at a start and inside a resume alike, and on its own: the platform may be gone by then.
 *
 *     hook RANGE INSIDE OUTSIDE
 *
 * Its input is runc's word of the machine, of which the pid counts. RANGE is who in the machine may ping. INSIDE and
 * OUTSIDE are netlink messages in hexadecimal, made by the platform: sent in the machine's network namespace, where
 * descriptor 100 stands for the host's own, and then in the host's.
 */
#include "say.h"

enum {
  AT_FDCWD = -100, O_WRONLY = 1, CLONE_NEWNET = 0x40000000, AF_NETLINK = 16, SOCK_RAW = 3, HOST = 100, INPUT_MAX = 65536,
  MESSAGES_MAX = 8192, NLMSG_ERROR = 2
};

static char input[INPUT_MAX];
static unsigned char messages[MESSAGES_MAX] __attribute__((aligned(4))), answer[MESSAGES_MAX] __attribute__((aligned(4)));

static void say_number(long number) {
  char digits[24], *at = digits + sizeof digits - 1;
  *at = 0;
  if (number < 0) number = -number;
  do *--at = (char)('0' + number % 10);
  while (number /= 10);
  say(at);
}

/* What was refused, which one of them, and the number of the kernel's reason. */
static void refused_one(const char *what, long which, long reason) {
  say("hangar: the network could not be wired: ");
  say(what);
  if (which) say_number(which);
  say(", errno ");
  say_number(reason);
  say("\n");
  leave(1);
}

static void refused(const char *what, long reason) { refused_one(what, 0, reason); }

static long checked(long result, const char *what) {
  if (result < 0) refused(what, result);
  return result;
}

/* The digits after `"pid":`, which may have a space before them. */
static const char *find_pid(void) {
  static char digits[16];
  const char *key = "\"pid\":";
  for (const char *at = input; *at; at++) {
    word i = 0;
    while (key[i] && at[i] == key[i]) i++;
    if (key[i]) continue;
    at += i;
    while (*at == ' ') at++;
    for (i = 0; at[i] >= '0' && at[i] <= '9' && i < sizeof digits - 1; i++) digits[i] = at[i];
    return digits;
  }
  refused("no pid in what runc says", 0);
  return 0;
}

static char *append(char *to, const char *text) {
  while (*text) *to++ = *text++;
  *to = 0;
  return to;
}

static void enter(const char *pid) {
  char path[64];
  append(append(append(path, "/proc/"), pid), "/ns/net");
  long host = checked(call(SYS_open_at, AT_FDCWD, "/proc/self/ns/net", 0, 0), "the host's namespace");
  checked(call(SYS_dup3, host, HOST, 0, 0), "the host's namespace");
  long machine = checked(call(SYS_open_at, AT_FDCWD, path, 0, 0), "the machine's namespace");
  checked(call(SYS_setns, machine, CLONE_NEWNET, 0, 0), "the machine's namespace");
}

static void allow_ping(const char *range) {
  long fd = checked(call(SYS_open_at, AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", O_WRONLY, 0), "who may ping");
  checked(call(SYS_write, fd, range, length(range), 0), "who may ping");
}

static int value(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

static word decode(const char *text) {
  word n = length(text) / 2;
  if (n > MESSAGES_MAX) refused("too many messages", (long)n);
  for (word i = 0; i < n; i++) messages[i] = (unsigned char)(value(text[2 * i]) << 4 | value(text[2 * i + 1]));
  return n;
}

/* A socket speaks to the network namespace in which it was made. */
static long open_netlink(void) { return checked(call(SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0), "netlink"); }

/* Each message is answered once; the first that is refused ends it. */
static void tell(long fd, const char *text) {
  word size = decode(text);
  checked(call6(SYS_sendto, fd, (word)messages, size, 0, 0, 0), "netlink");
  int wanted = 0;
  for (word at = 0; at < size; at += (*(unsigned *)(messages + at) + 3) & ~3U) wanted++;
  while (wanted > 0) {
    long got = checked(call(SYS_read, fd, answer, sizeof answer, 0), "netlink");
    for (long at = 0; at < got && wanted > 0; at += (*(unsigned *)(answer + at) + 3) & ~3U) {
      if (*(unsigned short *)(answer + at + 4) != NLMSG_ERROR) continue;
      int reason = *(int *)(answer + at + 16);
      if (reason) refused_one("message ", *(int *)(answer + at + 8), reason);
      wanted--;
    }
  }
}

__attribute__((used)) static void run(word *stack) {
  char **args = (char **)(stack + 1);
  if (stack[0] != 4) refused("it takes three words", 0);
  long n, size = 0;
  while (size < INPUT_MAX - 1 && (n = call(SYS_read, 0, input + size, INPUT_MAX - 1 - size, 0)) > 0) size += n;
  long outside = open_netlink();
  enter(find_pid());
  allow_ping(args[1]);
  tell(open_netlink(), args[2]);
  tell(outside, args[3]);
  leave(0);
}

/* The words given to the program lie on the stack as the kernel left it. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call run\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl run\n");
#endif
