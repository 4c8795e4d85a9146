/** Commands about a cluster of database nodes: its status, its problems, its throughput. */
import { table } from "../output.ts";
import type { Input, Result, Verb } from "../verb.ts";

const NODES: readonly [string, string] = [
  "<nodes...>",
  "a node, for example http://127.0.0.1:20202; the others are found",
];

type RunContext = Parameters<Verb["run"]>[0];

async function query(
  { runProgram }: RunContext,
  verb: string,
  options: readonly string[],
  nodes: readonly (string | undefined)[],
): Promise<{ exit: number; data: unknown }> {
  const given = nodes.filter((text) => text !== undefined);
  const { exit, text } = await runProgram("replication/admin.ts", [verb, ...options, "--", ...given], "quiet");
  return { exit, data: text === "" ? null : (JSON.parse(text) as unknown) };
}

const given = ({ options }: Input, ...names: string[]): string[] =>
  names.flatMap((name) => (typeof options[name] === "string" ? [`--${name}`, options[name]] : []));

interface StatusLine {
  node: string;
  role: string;
  term?: number;
  lag_ms?: number;
  behind?: number;
  in_sync?: boolean;
  problem?: string;
  databases?: Record<string, string>;
  problems?: Record<string, { state: string; reason: string }>;
}

const statusText = (nodes: readonly StatusLine[]): string =>
  table(
    ["node", "role", "term", "lag", "behind", "in sync", "databases"],
    nodes.map(({ node, role, term, lag_ms, behind, in_sync, problem, databases = {}, problems = {} }) => [
      node,
      role,
      String(term ?? ""),
      role === "replica" ? `${lag_ms} ms` : "-",
      role === "replica" ? String(behind) : "-",
      in_sync === undefined ? "-" : in_sync ? "yes" : "no",
      problem ??
        [
          ...Object.entries(databases).map(([name, at]) => `${name} ${Number.parseInt(at.slice(0, 16), 16)}`),
          ...Object.entries(problems).map(([name, { state, reason }]) => `${name} ${state}: ${reason}`),
        ].join(", "),
    ]),
  );

const dbStatus: Verb = {
  words: "db status",
  summary: "Show all nodes of a cluster with their positions and lag, discovered from one of them",
  arguments: [NODES],
  examples: ["hangar db status $DB_NODE"],
  async run(context, { args, rest }) {
    const { exit, data } = await query(context, "status", [], [...args, ...rest]);
    return { data, text: data ? statusText((data as { nodes: StatusLine[] }).nodes) : "", exit };
  },
};

interface Finding {
  level: string;
  node: string;
  what: string;
  do: string;
}

const dbDoctor: Verb = {
  words: "db doctor",
  summary: "Check a cluster of database nodes for problems and risks; exits 1 when there is a problem",
  arguments: [NODES],
  options: [["--dir <dir>", "also check this node's folder: file system, space, logs"]],
  examples: ["hangar db doctor $DB_NODE"],
  async run(context, input): Promise<Result> {
    const { exit, data } = await query(context, "doctor", given(input, "dir"), [...input.args, ...input.rest]);
    if (!data) return { data, text: "", exit };
    const { nodes, findings } = data as { nodes: number; findings: Finding[] };
    const lines = findings.map(({ level, node, what, do: remedy }) => `${level}: ${node} ${what}\n  ${remedy}\n`);
    const text = lines.length > 0 ? lines.join("") : `${nodes} nodes, nothing wrong\n`;
    return { data, text, exit: findings.some(({ level }) => level === "problem") ? 1 : exit };
  },
};

const dbBench: Verb = {
  words: "db bench",
  summary: "Measure transactions per second of the primary on this machine, and the lag of its replicas",
  arguments: [["<node>", "any node of the cluster, for example http://127.0.0.1:20202"]],
  options: [
    ["--seconds <n>", "how long (default: 5)"],
    ["--synchronous <mode>", "SQLite's synchronous: FULL or NORMAL (default: FULL)"],
  ],
  examples: ["hangar db bench $DB_NODE --seconds 1"],
  async run(context, input) {
    const { exit, data } = await query(context, "bench", given(input, "seconds", "synchronous"), input.args);
    return { data, text: data ? `${JSON.stringify(data, undefined, 2)}\n` : "", exit };
  },
};

export const CLUSTER_VERBS: readonly Verb[] = [dbStatus, dbDoctor, dbBench];
