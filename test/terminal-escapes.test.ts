/** What others wrote reaches a person's terminal as text, never as a command to the terminal. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { shell } from "./support.ts";

const root = join(import.meta.dirname, "..");

/** Sets the title, clears the screen, colours, an 8-bit CSI, a line that overwrites another, text that runs backwards. */
const HOSTILE = "a\u001b]0;owned\u0007b\u001b[2Jc\u001b[31md\u009b2Je\rf\u202eg\u0008\u007f";
const SHOWN = String.raw`a\x1b]0;owned\x07b\x1b[2Jc\x1b[31md\x9b2Je\x0df\u202eg\x08\x7f`;
const OBEYED = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/u;
/** The styles that the command adds to its own words. */
const ESCAPE = "\u001b";
const OWN_STYLES = new RegExp(`${ESCAPE}\\[(1|2|22|31|32|33|39)m`, "g");

const machine = {
  id: "0123456789abcd",
  name: HOSTILE,
  state: "started",
  region: HOSTILE,
  host_id: HOSTILE,
  instance_id: "01",
  private_ip: HOSTILE,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
  image_ref: { registry: "", repository: HOSTILE, tag: HOSTILE, digest: HOSTILE, labels: { [HOSTILE]: HOSTILE } },
  config: { image: HOSTILE, env: { A: HOSTILE }, metadata: { [HOSTILE]: HOSTILE }, guest: { cpus: 1, memory_mb: 256 } },
  events: [{ id: "1", type: HOSTILE, status: HOSTILE, source: HOSTILE, timestamp: 1, request: { error: HOSTILE } }],
  checks: [{ name: HOSTILE, status: "critical", output: HOSTILE }],
};

/** A platform whose every answer is hostile, also the fields that ours would refuse: names, events, logs, errors. */
async function hostilePlatform(t: TestContext): Promise<string> {
  const line = { timestamp: 1, stream: HOSTILE, message: HOSTILE, machine_id: machine.id, machine_name: HOSTILE };
  const answers: [RegExp, unknown][] = [
    [/\/logs/, { lines: [line] }],
    [/\/events/, [{ ...machine.events[0], app_name: HOSTILE, machine_name: HOSTILE, machine_id: machine.id }]],
    [/\/machines\/[0-9a-f]{14}/, machine],
    [/\/machines/, [machine]],
    [
      /\/volumes/,
      [
        {
          id: "vol_1",
          name: HOSTILE,
          state: HOSTILE,
          size_gb: 1,
          region: HOSTILE,
          zone: HOSTILE,
          created_at: "2026-01-01T00:00:00Z",
          attached_machine_id: HOSTILE,
        },
      ],
    ],
    [
      /\/v1\/apps$|\/v1\/apps\?/,
      {
        total_apps: 1,
        apps: [
          {
            name: HOSTILE,
            id: HOSTILE,
            machine_count: 1,
            network: HOSTILE,
            status: HOSTILE,
            organization: { name: HOSTILE, slug: HOSTILE },
          },
        ],
      },
    ],
  ];
  const server = createServer((request, response) => {
    const [, answer] = answers.find(([path]) => path.test(request.url ?? "")) ?? [];
    const body = answer ?? {
      error: HOSTILE,
      status: HOSTILE,
      hint: HOSTILE,
      details: [{ path: HOSTILE, problem: HOSTILE }],
    };
    response.writeHead(answer ? 200 : 422, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The command on a terminal of its own (script, of bsdutils), which is where it would do harm. */
async function onTerminal(url: string, command: string): Promise<string> {
  const hangar = `'${process.execPath}' '${join(root, "src/cli/main.ts")}'`;
  const script = `script -qec "${hangar} ${command} --url ${url} --token hf1_x" /dev/null`;
  const { stdout } = await shell(script, { TERM: "xterm" });
  return stdout.replaceAll("\r\n", "\n");
}

const COMMANDS = [
  "machines list --app web",
  `machines show ${machine.id} --app web`,
  "apps list",
  "volumes list --app web",
  `machines logs ${machine.id} --app web`,
  "logs web",
  `machines events ${machine.id} --app web`,
  "secrets list --app web",
  "machines list --app web --json",
  "logs web --json",
];

suite("terminal escape sequences", () => {
  test("every command prints escape sequences of names, logs, events and errors as text", async (t) => {
    const url = await hostilePlatform(t);
    for (const command of COMMANDS) {
      const printed = await onTerminal(url, command);
      assert.doesNotMatch(printed.replaceAll(OWN_STYLES, ""), OBEYED, `${command}: ${JSON.stringify(printed)}`);
      const shown = command.includes("--json") ? String.raw`a\u001b]0;owned\u0007b` : SHOWN.slice(0, 20);
      assert.ok(printed.includes(shown), `${command}: ${JSON.stringify(printed)}`);
    }
    const raw = await onTerminal(url, "logs web --raw");
    assert.ok(raw.includes("a\u001b]0;owned\u0007b"), "unless one asks for them");
  });

  test("all CLI output goes through the function that escapes control characters", () => {
    const WRITES = /process\.std(out|err)\.write\(|console\.|\bstyleText\(/g;
    /** Own cursor movements, a terminal or a program that the person chose, and the place itself. */
    const MAY = [
      "terminal-text",
      "watch",
      "progress",
      "main",
      "run-verb",
      "machines/ssh",
      "machines/terminal",
      "machines/inside",
      "machines/logs",
    ];
    const files = globSync("src/cli/**/*.ts", { cwd: root }).filter((file) => !file.endsWith(".test.ts"));
    const writers = files.filter((file) => WRITES.test(readFileSync(join(root, file), "utf8").replaceAll("\n", " ")));
    const wrong = writers.map((file) => file.slice("src/cli/".length, -3)).filter((name) => !MAY.includes(name));
    assert.deepEqual(wrong, []);
  });
});
