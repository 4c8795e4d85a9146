/* System calls without a C library, so that what is built here runs on every Linux of its architecture. */
#pragma once

typedef unsigned long word;

#if defined(__x86_64__)
enum {
  SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_munmap = 11, SYS_memfd_create = 319, SYS_ptrace = 101, SYS_open_at = 257, SYS_lseek = 8, SYS_mmap = 9, SYS_sigprocmask = 14, SYS_ioctl = 16,
  SYS_getpid = 39, SYS_getsockopt = 55, SYS_clone = 56, SYS_execve = 59, SYS_wait4 = 61, SYS_kill = 62, SYS_chdir = 80, SYS_setuid = 105,
  SYS_setgid = 106, SYS_setpgid = 109, SYS_setgroups = 116, SYS_sigtimedwait = 128, SYS_exit_group = 231, SYS_socket = 41, SYS_sendto = 44,
  SYS_dup3 = 292, SYS_setns = 308, SYS_unlinkat = 263, SYS_renameat = 264, SYS_ppoll = 271, SYS_pipe2 = 293, SYS_signalfd4 = 289,
  SYS_prctl = 157, SYS_fcntl = 72, SYS_fchmod = 91, SYS_mknodat = 259, SYS_clock_gettime = 228, SYS_writev = 20, SYS_accept4 = 288, SYS_bind = 49,
  SYS_listen = 50, SYS_recvmsg = 47, SYS_setsid = 112, SYS_getcwd = 79, SYS_umount2 = 166, SYS_fstatfs = 138,
  SYS_connect = 42, SYS_shutdown = 48, SYS_fsync = 74, SYS_umask = 95, SYS_getdents64 = 217, SYS_inotify_add_watch = 254, SYS_mkdirat = 258, SYS_fchownat = 260, SYS_linkat = 265,
  SYS_symlinkat = 266, SYS_readlinkat = 267, SYS_fchmodat = 268, SYS_utimensat = 280, SYS_inotify_init1 = 294, SYS_copy_file_range = 326,
  SYS_statx = 332, SYS_faccessat = 269
};
static inline long call6(long n, word a, word b, word c, word d, word e, word f) {
  long r;
  register word r10 __asm__("r10") = d;
  register word r8 __asm__("r8") = e;
  register word r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return r;
}
#elif defined(__aarch64__)
enum {
  SYS_read = 63, SYS_write = 64, SYS_close = 57, SYS_munmap = 215, SYS_memfd_create = 279, SYS_ptrace = 117, SYS_open_at = 56, SYS_lseek = 62, SYS_mmap = 222, SYS_sigprocmask = 135, SYS_ioctl = 29,
  SYS_getpid = 172, SYS_getsockopt = 209, SYS_clone = 220, SYS_execve = 221, SYS_wait4 = 260, SYS_kill = 129, SYS_chdir = 49, SYS_setuid = 146,
  SYS_setgid = 144, SYS_setpgid = 154, SYS_setgroups = 159, SYS_sigtimedwait = 137, SYS_exit_group = 94, SYS_socket = 198, SYS_sendto = 206,
  SYS_dup3 = 24, SYS_setns = 268, SYS_unlinkat = 35, SYS_renameat = 38, SYS_ppoll = 73, SYS_pipe2 = 59, SYS_signalfd4 = 74,
  SYS_prctl = 167, SYS_fcntl = 25, SYS_fchmod = 52, SYS_mknodat = 33, SYS_clock_gettime = 113, SYS_writev = 66, SYS_accept4 = 242, SYS_bind = 200,
  SYS_listen = 201, SYS_recvmsg = 212, SYS_setsid = 157, SYS_getcwd = 17, SYS_umount2 = 39, SYS_fstatfs = 44,
  SYS_connect = 203, SYS_shutdown = 210, SYS_fsync = 82, SYS_umask = 166, SYS_getdents64 = 61, SYS_inotify_add_watch = 27, SYS_mkdirat = 34, SYS_fchownat = 54, SYS_linkat = 37,
  SYS_symlinkat = 36, SYS_readlinkat = 78, SYS_fchmodat = 53, SYS_utimensat = 88, SYS_inotify_init1 = 26, SYS_copy_file_range = 285,
  SYS_statx = 291, SYS_faccessat = 48
};
static inline long call6(long n, word a, word b, word c, word d, word e, word f) {
  register word x8 __asm__("x8") = n;
  register word x0 __asm__("x0") = a;
  register word x1 __asm__("x1") = b;
  register word x2 __asm__("x2") = c;
  register word x3 __asm__("x3") = d;
  register word x4 __asm__("x4") = e;
  register word x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "x86_64 and aarch64 only"
#endif

/* Since Linux 5.1 the numbers are the same on every architecture. */
enum { SYS_open_tree = 428, SYS_move_mount = 429, SYS_openat2 = 437, SYS_mount_setattr = 442 };

#define call(n, a, b, c, d) call6(n, (word)(a), (word)(b), (word)(c), (word)(d), 0, 0)
