import { PROXY_LIMITS } from "../../limits.ts";
import { BadMessage } from "./bad-message.ts";
import { headEnd, type RequestHead, readRequest } from "./head.ts";

/** Drops the empty line that old clients send before a request or after a body. */
export const withoutEmptyLine = (unread: Buffer): Buffer =>
  unread.length >= 2 && unread[0] === 13 && unread[1] === 10 ? unread.subarray(2) : unread;

/** Parses the request head that `unread` begins with; undefined while part of it is missing. */
export function takeRequest(unread: Buffer): { head: RequestHead; rest: Buffer } | undefined {
  const end = headEnd(unread);
  if (end > PROXY_LIMITS.head_bytes || (end < 0 && unread.length > PROXY_LIMITS.head_bytes)) {
    throw new BadMessage(`the request's head has more than ${PROXY_LIMITS.head_bytes} bytes (limit head_bytes)`, 431);
  }
  return end < 0 ? undefined : { head: readRequest(unread, end + 4), rest: unread.subarray(end + 4) };
}
