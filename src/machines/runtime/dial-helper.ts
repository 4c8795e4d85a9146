/**
 * The program inside every machine that connects to one of its ports, also to one on loopback: `native/dial.c` of the runc
 * driver. Its word is the port; its output begins with a zero byte when it is connected.
 */
export const DIAL_HELPER = "/.svc/dial";
