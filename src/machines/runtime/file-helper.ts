/**
 * The program inside every machine that works on its files, whatever else the image has: `native/files.c` of the runc
 * driver, which says what its operations are given and answer. A driver that runs `process` has it at this path.
 */
export const FILE_HELPER = "/.svc/files";

/** The root that its paths are resolved below, its first word. */
export const MACHINE_ROOT = "/";
