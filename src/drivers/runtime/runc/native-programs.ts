import { join } from "node:path";

/** A small C program that ships with the platform, built for this processor. */
export const nativeProgram = (name: string): string => join(import.meta.dirname, "native", process.arch, name);
