/** What the logs benchmark asks, in the words of each engine. */
import type { LogSearch } from "#machines/logs/search.ts";

/** A line as it was kept, for the peers. */
export interface KeptLine {
  machine: string;
  /** Nanoseconds since 1970. */
  at: string;
  message: string;
}

export interface Query {
  what: string;
  /** All lines, or the newest 100. */
  all: boolean;
  search: Pick<LogSearch, "filter" | "since" | "until"> & { machine?: string };
  logsql: string;
  /** What grep looks for, where a search of text answers it. */
  grep?: string;
}

const MS = 1_000_000n;
/** About a fiftieth of the time in which the lines were written. */
const SHORT = 50n;

/** The ids and times are those of lines in the middle. */
export function queriesOf(lines: readonly KeptLine[]): Query[] {
  const json = lines.filter(({ message }) => message.startsWith("{"));
  const line = json[Math.floor(json.length / 2)];
  if (!line) throw new Error("there are no JSON lines");
  const { request_id, user_id } = JSON.parse(line.message) as { request_id: string; user_id: number };
  const [first, last] = [BigInt(lines[0]?.at ?? 0), BigInt(lines.at(-1)?.at ?? 0)];
  const since = Number(BigInt(line.at) / MS);
  const until = since + Math.max(1, Number((last - first) / MS / SHORT));
  const span = `_time:[${since / 1000}, ${until / 1000})`;
  return [
    {
      what: "an id that is there once",
      all: true,
      search: { filter: { text: request_id } },
      logsql: `request_id:="${request_id}" or _msg:"${request_id}"`,
      grep: request_id,
    },
    {
      what: "a rare word, all of them",
      all: true,
      search: { filter: { text: "OutOfMemoryError" } },
      logsql: "OutOfMemoryError",
      grep: "OutOfMemoryError",
    },
    {
      what: "a frequent word, the newest 100",
      all: false,
      search: { filter: { text: "completed" } },
      logsql: "completed",
      grep: "completed",
    },
    {
      what: "a frequent word, all of them",
      all: true,
      search: { filter: { text: "completed" } },
      logsql: "completed",
      grep: "completed",
    },
    {
      what: "a JSON field with a rare value, all of them",
      all: true,
      search: { filter: { fields: [`user_id=${user_id}`] } },
      logsql: `user_id:=${user_id}`,
    },
    {
      what: "a JSON field at least 500, the newest 100",
      all: false,
      search: { filter: { fields: ["status>=500"] } },
      logsql: "status:>=500",
    },
    { what: "errors, the newest 100", all: false, search: { filter: { level: "error" } }, logsql: "level:=error" },
    { what: "errors, all of them", all: true, search: { filter: { level: "error" } }, logsql: "level:=error" },
    {
      what: "one machine over a short time",
      all: true,
      search: { filter: {}, since, until, machine: line.machine },
      logsql: `{machine="${line.machine}"} ${span}`,
    },
  ];
}
