/** Paths and modes of requests about files. */
import { fail } from "#core/errors.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import { joined } from "./fields.ts";

/** A path as it is given to the machine, which alone resolves `..` and links. */
export function filePath(path: string | undefined, folder: string | undefined, name = "path"): string {
  if (path === undefined || path === "") fail("invalid_request", `${name} is missing: the path of a file or folder`);
  const base = folder || "/";
  if (!base.startsWith("/")) fail("invalid_request", "workingDir is not absolute: it begins with /");
  const whole = path.startsWith("/") ? path : joined(base, path);
  const most = SPRITE_LIMITS.file_path_bytes;
  if (whole.includes("\0") || Buffer.byteLength(whole) > most)
    fail("invalid_request", `${name} has a zero byte or more than ${most} bytes (limit file_path_bytes)`);
  return whole;
}

/** Octal digits, or an empty text for none. */
export function fileMode(mode: string | undefined): string {
  if (mode === undefined || mode === "") return "";
  if (!/^0?[0-7]{1,4}$/.test(mode)) fail("invalid_request", `mode ${mode.slice(0, 20)} is not octal, such as 0644`);
  return mode;
}
