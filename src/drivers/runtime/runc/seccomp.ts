/**
 * What no program in a machine may ask of the kernel. Everything else is allowed: the user namespace, the dropped
 * capabilities and no-new-privileges already bound what a call can do; this list takes away what has been the way out
 * of containers before, and what a suspended machine could not be brought back with.
 */
const REFUSED = `
  unshare setns mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
  bpf perf_event_open add_key keyctl request_key userfaultfd open_by_handle_at name_to_handle_at
  kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl
  process_vm_readv process_vm_writev ptrace kcmp settimeofday clock_settime clock_adjtime adjtimex syslog
  lookup_dcookie vhangup nfsservctl fanotify_init iopl ioperm`;

/** Answered as an old kernel would, so that programs take another way. CRIU cannot keep a ring; and what `clone3` asks for cannot be looked into. */
const UNKNOWN = "io_uring_setup io_uring_enter io_uring_register clone3";

const EPERM = 1;
const ENOSYS = 38;
const AF_VSOCK = 40;
const CLONE_NEWUSER = 0x1000_0000;

const words = (text: string): string[] => text.trim().split(/\s+/);

/** Programs of the narrower kinds run on the same kernel, and must not find another door. */
const ARCHITECTURES: Record<string, string[]> = {
  x64: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
  arm64: ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
};

export const SECCOMP = {
  defaultAction: "SCMP_ACT_ALLOW",
  architectures: ARCHITECTURES[process.arch] ?? [],
  syscalls: [
    { names: words(UNKNOWN), action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    { names: words(REFUSED), action: "SCMP_ACT_ERRNO", errnoRet: EPERM },
    {
      names: ["clone"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: EPERM,
      args: [{ index: 0, value: CLONE_NEWUSER, valueTwo: CLONE_NEWUSER, op: "SCMP_CMP_MASKED_EQ" }],
    },
    // No network namespace holds these: on a host that is a virtual machine itself they reach what runs it.
    {
      names: ["socket"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: EPERM,
      args: [{ index: 0, value: AF_VSOCK, op: "SCMP_CMP_EQ" }],
    },
  ],
};
