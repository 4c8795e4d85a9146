/**
 * System calls that are denied to programs in a machine. All others are allowed: the user namespace, the dropped
 * capabilities and no-new-privileges already bound what a call can do; this list denies calls that container escapes
 * have used before, and those that CRIU cannot restore.
 */
const NAMESPACES = "unshare mount umount2 pivot_root";
const REFUSED = `
  setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
  bpf perf_event_open add_key keyctl request_key userfaultfd open_by_handle_at name_to_handle_at
  kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl
  process_vm_readv process_vm_writev ptrace kcmp settimeofday clock_settime clock_adjtime adjtimex syslog
  lookup_dcookie vhangup nfsservctl fanotify_init iopl ioperm`;

/**
 * Refused with ENOSYS, as on an old kernel, so that programs fall back. CRIU cannot checkpoint io_uring, and the
 * arguments of `clone3` cannot be filtered.
 */
const UNKNOWN = "io_uring_setup io_uring_enter io_uring_register clone3";

const EPERM = 1;
const ENOSYS = 38;
const AF_VSOCK = 40;
const CLONE_NEWUSER = 0x1000_0000;

const names = (text: string): string[] => text.trim().split(/\s+/);

/** Also covers 32-bit programs, which could otherwise bypass the filter. */
const ARCHITECTURES: Record<string, string[]> = {
  x64: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
  arm64: ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
};

/** A machine's; a build's own file systems are mounted by what runs its steps, inside its user namespace. */
export const seccomp = (sandbox?: "build") => ({
  defaultAction: "SCMP_ACT_ALLOW",
  architectures: ARCHITECTURES[process.arch] ?? [],
  syscalls: [
    { names: names(UNKNOWN), action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    { names: [...names(REFUSED), ...(sandbox ? [] : names(NAMESPACES))], action: "SCMP_ACT_ERRNO", errnoRet: EPERM },
    {
      names: ["clone"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: EPERM,
      args: [{ index: 0, value: CLONE_NEWUSER, valueTwo: CLONE_NEWUSER, op: "SCMP_CMP_MASKED_EQ" }],
    },
    // vsock is not confined by network namespaces: on a virtual machine it reaches the hypervisor.
    {
      names: ["socket"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: EPERM,
      args: [{ index: 0, value: AF_VSOCK, op: "SCMP_CMP_EQ" }],
    },
  ],
});
