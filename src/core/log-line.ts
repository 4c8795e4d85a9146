/** What a line says: its level, its message, and the fields of one that is JSON or logfmt. */
export interface Line {
  timestamp: number;
  stream: string;
  message: string;
  machine_id?: string;
  machine_name?: string;
}

export const LEVELS = ["error", "warn", "info", "debug"] as const;
export type Level = (typeof LEVELS)[number];

export interface ReadLine {
  level: Level | undefined;
  text: string;
  /** Of a JSON line, without its message, level and time. */
  fields: [name: string, value: unknown][];
  request_id: string | undefined;
}

const MESSAGE = ["msg", "message", "event"];
const LEVEL = ["level", "severity", "lvl", "loglevel"];
const TIME = ["time", "timestamp", "ts", "@timestamp"];
const REQUEST = ["request_id", "requestId", "req_id", "reqId", "svc_request_id", "svc-request-id", "trace_id"];
/** An id of a request as the edge makes it: a ULID. */
const ULID = /\b0[0-9A-HJKMNP-TV-Z]{25}\b/;
const WORDS: readonly [RegExp, Level][] = [
  [/^(fatal|panic|crit\w*|emerg\w*|alert|err\w*|e)$/i, "error"],
  [/^(warn\w*|w)$/i, "warn"],
  [/^(info\w*|notice|log|i)$/i, "info"],
  [/^(debug|trace|verbose|d)$/i, "debug"],
];
/** A level at the beginning of a line, after what may be a time, or as logfmt. */
const PLAIN =
  /(?:^|[\s[(])(?:level=|lvl=)?"?(FATAL|PANIC|CRITICAL|CRIT|ERROR|ERR|WARNING|WARN|NOTICE|INFO|DEBUG|TRACE)"?(?=[\s\]):|]|$)/i;
const BEGINNING = 80;

const kept = new WeakMap<Line, ReadLine>();

/** Read once for each line. */
export function readLine(line: Line): ReadLine {
  const known = kept.get(line);
  if (known) return known;
  const read = readMessage(line.message);
  kept.set(line, read);
  return read;
}

export const readMessage = (message: string): ReadLine => fromJson(message) ?? fromText(message);

function fromJson(message: string): ReadLine | undefined {
  const start = message.trimStart();
  if (!start.startsWith("{") || !message.trimEnd().endsWith("}")) return undefined;
  try {
    const all = JSON.parse(message) as Record<string, unknown>;
    const first = (names: readonly string[]): string | undefined => names.find((name) => all[name] !== undefined);
    const [text, level, request] = [first(MESSAGE), first(LEVEL), first(REQUEST)];
    const known = new Set([text, level, ...TIME]);
    return {
      level: level === undefined ? undefined : levelOf(all[level]),
      text: text === undefined ? "" : textOf(all[text]),
      fields: Object.entries(all).filter(([name]) => !known.has(name)),
      request_id: request === undefined ? undefined : textOf(all[request]),
    };
  } catch {
    return undefined;
  }
}

function fromText(message: string): ReadLine {
  const [, word] = PLAIN.exec(message.slice(0, BEGINNING)) ?? [];
  return { level: levelOf(word), text: message, fields: [], request_id: ULID.exec(message)?.[0] };
}

/** A word, or a number as pino and bunyan write it. */
function levelOf(value: unknown): Level | undefined {
  if (typeof value === "number") return value >= 50 ? "error" : value >= 40 ? "warn" : value >= 30 ? "info" : "debug";
  return typeof value === "string" ? WORDS.find(([pattern]) => pattern.test(value))?.[1] : undefined;
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
