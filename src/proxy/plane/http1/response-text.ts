/** Response heads in HTTP/1.1 syntax. */
import type { Socket } from "node:net";
import type { PortOptions } from "../../table.ts";
import { answerFields, type OwnResponse } from "../header-rewrite.ts";
import { CHUNKED, type RequestHead, type ResponseHead, UNTIL_CLOSE } from "./head.ts";

export interface ResponseText {
  text: string;
  /** Whether the body is chunked. */
  chunked: boolean;
  /** Whether the connection closes after it. */
  close: boolean;
}

/** The head of a machine's response for a client. */
export function answerText(
  head: ResponseHead,
  request: RequestHead,
  { options, request_id, last }: { options: PortOptions; request_id: string; last: boolean },
): ResponseText {
  const open = head.length === CHUNKED || head.length === UNTIL_CLOSE;
  // HTTP/1.0 has no chunked encoding: the body ends with the connection.
  const close = last || !request.keep_alive || (open && request.minor === 0);
  const chunked = open && request.minor === 1;
  let text = `HTTP/1.1 ${head.status} ${head.reason}\r\n`;
  answerFields(head, options, request_id, (name, value) => {
    text += `${name}: ${value}\r\n`;
  });
  if (chunked) text += "transfer-encoding: chunked\r\n";
  else if (head.length > 0) text += `content-length: ${head.length}\r\n`;
  if (close) text += "connection: close\r\n";
  else if (request.minor === 0) text += "connection: keep-alive\r\n";
  return { text: `${text}\r\n`, chunked, close };
}

/** An interim (1xx) response, unchanged. */
export function interimText({ status, reason, fields }: ResponseHead): string {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${text}\r\n`;
}

/** The 101 response of a protocol upgrade. */
export function switchText(head: ResponseHead, request: RequestHead, options: PortOptions, request_id: string): string {
  let text = `HTTP/1.1 101 ${head.reason}\r\nconnection: upgrade\r\nupgrade: ${head.upgrade ?? request.upgrade}\r\n`;
  answerFields(head, options, request_id, (name, value) => {
    text += `${name}: ${value}\r\n`;
  });
  return `${text}\r\n`;
}

/** Sends a response that the proxy itself makes. */
export function sendOwn(
  socket: Socket,
  own: OwnResponse,
  { method, close }: { method?: string; close: boolean },
): void {
  let text = `HTTP/1.1 ${own.status} ${own.reason}\r\n`;
  for (const [name, value] of own.fields) text += `${name}: ${value}\r\n`;
  text += `content-length: ${Buffer.byteLength(own.body)}\r\n${close ? "connection: close\r\n" : ""}\r\n`;
  socket.cork();
  socket.write(text, "latin1");
  socket.write(method === "HEAD" ? "" : own.body);
  socket.uncork();
}
