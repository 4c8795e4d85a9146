/**
 * What the machines of the logs benchmark write, the same on every run: access logs, JSON lines and text with stack traces,
 * full of ids and numbers, as real ones are.
 */
import { random } from "../../test/support.ts";

const PATHS = ["/", "/api/items", "/api/orders", "/api/users/me", "/static/app.js", "/login", "/search", "/api/cart"];
const AGENTS = [
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
  "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
  "curl/8.8.0",
  "Go-http-client/2.0",
];
const WORK = ["payment captured", "cache refreshed", "mail queued", "session renewed", "index updated"];
const CLASSES = ["CartService", "OrderStore", "HttpHandler", "Retry", "Pool", "JsonCodec"];

type Roll = () => number;
type Write = (roll: Roll) => string[];

const whole = (roll: Roll, below: number): number => Math.floor(roll() * below);
const pick = <T>(from: readonly T[], roll: Roll): T => from[whole(roll, from.length)] as T;
const hex = (roll: Roll, digits: number): string =>
  Array.from({ length: digits }, () => "0123456789abcdef"[whole(roll, 16)]).join("");
const uuid = (roll: Roll): string => [8, 4, 4, 4, 12].map((digits) => hex(roll, digits)).join("-");
const address = (roll: Roll): string => `${[10, 172, 203][whole(roll, 3)]}.${whole(roll, 255)}.${whole(roll, 255)}.7`;

function status(roll: Roll): number {
  const at = roll();
  if (at < 0.004) return pick([500, 502, 503], roll);
  return at < 0.06 ? pick([400, 401, 404, 429], roll) : pick([200, 200, 200, 201, 204, 304], roll);
}

const access: Write = (roll) => {
  const path = `${pick(PATHS, roll)}/${whole(roll, 1e6)}`;
  const time = `2026-03-${10 + whole(roll, 20)}T12:${10 + whole(roll, 50)}:${10 + whole(roll, 50)}Z`;
  const request = `"${pick(["GET", "GET", "POST"], roll)} ${path} HTTP/1.1" ${status(roll)} ${whole(roll, 90_000)}`;
  const timing = `rt=${(roll() * 2).toFixed(3)} trace=${hex(roll, 32)}`;
  return [`${address(roll)} - - [${time}] ${request} "-" "${pick(AGENTS, roll)}" ${timing}`];
};

const json: Write = (roll) => {
  const code = status(roll);
  const level = code >= 500 ? "error" : code >= 400 ? "warn" : "info";
  const line = {
    level,
    time: 1_773_000_000_000 + whole(roll, 1e9),
    msg: level === "error" ? "request failed" : "request completed",
    request_id: uuid(roll),
    user_id: whole(roll, 200_000),
    method: pick(["GET", "PUT", "POST"], roll),
    path: `${pick(PATHS, roll)}/${whole(roll, 1e5)}`,
    status: code,
    duration_ms: Number((roll() * 900).toFixed(2)),
    http: { bytes: whole(roll, 1e6), host: `shop-${whole(roll, 40)}.example` },
  };
  return [JSON.stringify(line)];
};

const text: Write = (roll) => {
  const id = `job-${whole(roll, 1e7)}`;
  if (roll() > 0.01)
    return [`INFO  [worker-${whole(roll, 16)}] ${pick(WORK, roll)} for ${id} in ${whole(roll, 5000)} ms`];
  const error = roll() < 0.01 ? "OutOfMemoryError: heap space" : `IllegalStateException: ${id} has no lease`;
  const frames = Array.from({ length: 4 + whole(roll, 12) }, () => {
    const name = pick(CLASSES, roll);
    return `    at example.shop.${name}.run(${name}.java:${whole(roll, 900)})`;
  });
  return [`ERROR [worker-${whole(roll, 16)}] ${id} failed: ${error}`, ...frames];
};

const KINDS = [access, json, text];

/** The lines of one machine, about so many bytes of them, in portions. */
export function* portions(machine: number, bytes: number, portion: number): Generator<string[], undefined> {
  const roll = random(machine + 1);
  const write = KINDS[machine % KINDS.length] as Write;
  let [lines, size, left]: [string[], number, number] = [[], 0, bytes];
  while (left > 0) {
    for (const line of write(roll)) {
      lines.push(line);
      size += line.length + 1;
    }
    if (size < Math.min(portion, left)) continue;
    yield lines;
    left -= size;
    [lines, size] = [[], 0];
  }
}
