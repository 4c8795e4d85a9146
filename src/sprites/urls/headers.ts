/** Header fields on their way to a program in a sprite and back: those about one connection stay on it. */
import type { IncomingMessage } from "node:http";
import type { UrlAuth } from "../types.ts";

const OF_CONNECTION = new Set(["connection", "keep-alive", "proxy-connection", "upgrade"]);

/** The fields that go on, as a flat list that keeps order and repetition. */
function kept({ rawHeaders, headers }: IncomingMessage, without: readonly string[]): string[] {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  // What frames the body is not for the connection alone, whatever its sender says.
  const left = new Set([...OF_CONNECTION, ...named.filter((name) => !FRAMING.has(name)), ...without]);
  const fields: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = [rawHeaders[at], rawHeaders[at + 1]];
    if (!left.has(name.toLowerCase())) fields.push(name, value);
  }
  return fields;
}
const FRAMING = new Set(["content-length", "transfer-encoding", "host"]);

/** The token of a private URL is for us: a program that got it could act as its sender. */
export function requestHeaders(request: IncomingMessage, auth: UrlAuth): string[] {
  // The expectation has been answered.
  const fields = kept(request, auth === "public" ? ["expect"] : ["expect", "authorization"]);
  const { upgrade } = request.headers;
  return [
    ...fields,
    ...(upgrade === undefined ? ["Connection", "close"] : ["Connection", "Upgrade", "Upgrade", upgrade]),
  ];
}

export const answerHeaders = (answer: IncomingMessage): string[] => kept(answer, []);

/** The head that begins another protocol. */
export function upgradeHead(answer: IncomingMessage): string {
  const fields = [...kept(answer, FRAMED), "Connection", "Upgrade", "Upgrade", answer.headers.upgrade ?? ""];
  const lines = fields.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${fields[at + 1]}\r\n`] : []));
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`;
}
const FRAMED = ["content-length", "transfer-encoding"];
