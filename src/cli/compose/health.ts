/** Converts a `healthcheck` to a TCP or HTTP check: checks run no command in the machine. */
import { splitWords } from "../app-file/units.ts";
import { type Project, type Table, tableOf, texts } from "./read.ts";

/** Health check programs, each with its default port and the option that sets another. */
const PROBES: readonly [program: RegExp, port: number, option: RegExp][] = [
  [/\bpg_isready\b|\bpsql\b/, 5432, /(?:-p|--port)[ =]?(\d+)/],
  [/\b(redis|valkey)-cli\b/, 6379, /-p ?(\d+)/],
  [/\b(mysqladmin|mariadb-admin|mysql|mariadb|healthcheck\.sh)\b/, 3306, /(?:-P|--port)[ =]?(\d+)/],
  [/\b(mongosh?|mongo)\b/, 27017, /--port[ =]?(\d+)/],
  [/\brabbitmq-diagnostics\b/, 5672, /--port[ =]?(\d+)/],
];

/** One check by the service's name, or none. */
export function checksFor(project: Project, name: string, service: Table): Table {
  const health = tableOf(service["healthcheck"], `${project.path}: services.${name}.healthcheck`);
  const test = textOf(health["test"]);
  if (test === undefined || health["disable"] === true) return {};
  const check = checkOf(test) ?? portCheck(project, name, service, test);
  if (!check) return {};
  const times = { interval: "interval", timeout: "timeout", grace_period: "start_period" };
  const given = Object.entries(times).flatMap(([ours, theirs]) =>
    typeof health[theirs] === "string" ? [[ours, health[theirs]] as const] : [],
  );
  return { [name]: { interval: "10s", timeout: "5s", ...Object.fromEntries(given), ...check, processes: [name] } };
}

function textOf(test: unknown): string | undefined {
  const words = texts(test);
  if (words.length === 0 || words[0] === "NONE") return undefined;
  return (/^CMD(-SHELL)?$/.test(words[0] ?? "") ? words.slice(1) : words).join(" ");
}

/** The TCP or HTTP check that a command amounts to; undefined when it is not known. */
export function checkOf(test: string): Table | undefined {
  const [url] = /https?:\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])[^\s"'|;&)]*/.exec(test) ?? [];
  if (url !== undefined && URL.canParse(url)) {
    const { protocol, port, pathname, search } = new URL(url);
    const is_tls = protocol === "https:";
    const method = /\bwget\b.*--spider|\bcurl\b.*(\s-I\b|--head)/.test(test) ? { method: "HEAD" } : {};
    return {
      type: "http",
      port: Number(port) || (is_tls ? 443 : 80),
      path: pathname + search,
      ...method,
      ...(is_tls ? { protocol: "https", tls_skip_verify: true } : {}),
    };
  }
  const words = splitWords(test);
  const nc = words.findIndex((word) => /(^|\/)(nc|ncat|netcat)$/.test(word));
  const port = nc < 0 ? undefined : words.slice(nc).find((word) => /^\d+$/.test(word));
  if (port !== undefined) return { type: "tcp", port: Number(port) };
  const probe = PROBES.find(([program]) => program.test(test));
  return probe && { type: "tcp", port: Number(probe[2].exec(test)?.[1] ?? probe[1]) };
}

/** A check that the port is open, instead of a command that cannot be converted. */
function portCheck({ notes }: Project, name: string, service: Table, test: string): Table | undefined {
  const [port] = [...texts(service["expose"]), ...texts(service["ports"])].flatMap(
    (text) => /(\d+)(?:\/tcp)?$/.exec(text)?.[1] ?? [],
  );
  const instead = port === undefined ? "it has no check" : `that port ${port} is open is checked instead`;
  notes.push(
    `${name}: the healthcheck \`${test}\` is a command, and machines are checked over TCP or HTTP: ${instead}`,
  );
  return port === undefined ? undefined : { type: "tcp", port: Number(port) };
}
