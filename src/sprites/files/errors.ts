/** Errors of files as the Sprites API tells them: the code of the system call, its text, and the path. */
import { constants } from "node:os";
import { getSystemErrorMap } from "node:util";
import type { ErrorCode } from "#core/error-catalogue.ts";
import { ApiError } from "#core/errors.ts";

const NAMES = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));

const STATUS: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "not_found",
  EACCES: "file_denied",
  EPERM: "file_denied",
  EROFS: "file_denied",
  EEXIST: "file_conflict",
  ENOTEMPTY: "file_conflict",
  ENOTDIR: "file_conflict",
  EISDIR: "file_conflict",
  EBUSY: "file_conflict",
  EXDEV: "file_conflict",
  EINVAL: "invalid_request",
  ELOOP: "invalid_request",
  ENAMETOOLONG: "invalid_request",
};

/** Of the number of an error and the call that failed, as `ENOENT: no such file or directory, open '/none'`. */
export function fileError(errno: number, call: string, path: string): ApiError {
  const code = NAMES.get(errno) ?? `E${errno}`;
  const text = getSystemErrorMap().get(-errno)?.[1] ?? "the file system failed";
  return new ApiError(STATUS[code] ?? "file_failed", `${code}: ${text}, ${call} '${path}'`, { facts: { code, path } });
}
