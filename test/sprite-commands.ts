/** What commands in sprites must do, by the Sprites SDK, whichever driver runs them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, type TestContext, test } from "node:test";
import { ExecError, type Sprite, type SpriteCommand, SpritesClient } from "@fly/sprites";
import { WebSocket } from "ws";
import { until } from "./support.ts";

export interface OpenedSprite {
  base_url: string;
  token: string;
  sprite: Sprite;
}

type Open = (t: TestContext) => Promise<OpenedSprite>;

/** Everything that a command has written so far. */
function outputOf(command: SpriteCommand): { text: string } {
  const seen = { text: "" };
  command.stdout.on("data", (piece: Buffer) => {
    seen.text += piece.toString();
  });
  return seen;
}

async function failed(work: Promise<unknown>): Promise<ExecError> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ExecError, String(thrown));
  return thrown;
}

async function linesOf<Line>(stream: AsyncIterable<Line>): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const line of stream) lines.push(line);
  return lines;
}

export function spriteCommandsSuite(name: string, open: Open, skip?: string): void {
  suite(`commands in sprites: ${name}`, { skip }, () => {
    plainCommands(open);
    terminals(open);
    sessions(open);
  });
}

function plainCommands(open: Open): void {
  test("a command has separate streams, an exit code, variables and a folder", async (t) => {
    const { sprite } = await open(t);
    const { stdout, stderr, exitCode } = await sprite.execFile("sh", ["-c", "echo out; echo err >&2"]);
    assert.deepEqual([stdout, stderr, exitCode], ["out\n", "err\n", 0]);
    const { exitCode: code, result } = await failed(sprite.execFile("sh", ["-c", "echo no; exit 42"]));
    assert.deepEqual([code, result.stdout], [42, "no\n"]);
    const options = { env: { GREETING: "good day" }, cwd: "/tmp" };
    const shown = await sprite.execFile("sh", ["-c", "pwd; env"], options);
    assert.match(String(shown.stdout), /^\/tmp$/m);
    assert.match(String(shown.stdout), /^GREETING=good day$/m);
    assert.equal((await failed(sprite.execFile("no-such-program"))).exitCode, 127);
  });

  test("input arrives, its end too, and 8 MB come back whole", async (t) => {
    const { sprite } = await open(t);
    const command = sprite.spawn("cat");
    const pieces: Buffer[] = [];
    command.stdout.on("data", (piece: Buffer) => pieces.push(piece));
    await once(command, "spawn");
    const piece = Buffer.alloc(64 * 1024, "0123456789abcdef");
    for (let n = 0; n < 128; n++) command.stdin.write(piece);
    command.stdin.end();
    assert.equal(await command.wait(), 0);
    const all = Buffer.concat(pieces);
    assert.equal(all.length, 8 * 1024 * 1024);
    assert.ok(all.equals(Buffer.alloc(all.length, "0123456789abcdef")));
  });

  test("a signal ends a command", async (t) => {
    const { sprite } = await open(t);
    const command = sprite.spawn("sh", ["-c", "echo on; sleep 3600"]);
    await once(command.stdout, "data");
    command.kill("SIGTERM");
    assert.equal(await command.wait(), 143);
  });

  test("a command runs over plain HTTP", async (t) => {
    const { sprite } = await open(t);
    const { stdout, stderr, exitCode } = await sprite.execFileHTTP("sh", ["-c", "echo out; echo err >&2"]);
    assert.deepEqual([stdout, stderr, exitCode], ["out\n", "err\n", 0]);
    assert.equal((await sprite.execFileHTTP("cat", [], { input: "typed" })).stdout, "typed");
    assert.equal((await failed(sprite.execFileHTTP("sh", ["-c", "exit 7"]))).exitCode, 7);
  });

  test("commands run over control connections, many at a time", async (t) => {
    const { sprite, base_url, token } = await open(t);
    const controlled = new SpritesClient(token, { baseURL: base_url, controlMode: true }).sprite(sprite.name);
    t.after(() => controlled.closeControlConnection());
    assert.equal((await controlled.execFile("echo", ["one"])).stdout, "one\n");
    assert.ok(controlled.hasControlConnection());
    assert.equal((await controlled.execFile("echo", ["two"])).stdout, "two\n");
    assert.equal((await failed(controlled.execFile("sh", ["-c", "exit 9"]))).exitCode, 9);
    const connection = await controlled.getControlConnection();
    const op = await connection.startOp("nonsense", {});
    const problem = (await once(op, "error")) as [Error];
    assert.match(problem[0].message, /no operation nonsense/);
  });

  test("100 commands run at once, and a client that reads nothing holds up no other", async (t) => {
    const { sprite, base_url, token } = await open(t);
    const url = `${base_url.replace("http", "ws")}/v1/sprites/${sprite.name}/exec?cmd=seq&cmd=3000000`;
    const stalled = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    t.after(() => stalled.terminate());
    await once(stalled, "open");
    stalled.pause();
    const numbers = Array.from({ length: 100 }, (_, n) => String(n));
    const results = await Promise.all(numbers.map((n) => sprite.execFile("echo", [n])));
    assert.deepEqual(
      results.map(({ stdout }) => stdout),
      numbers.map((n) => `${n}\n`),
    );
  });
}

function terminals(open: Open): void {
  test("a terminal takes keys, has a size that changes, and an exit code", async (t) => {
    const { sprite } = await open(t);
    const command = sprite.spawn("sh", [], { tty: true, rows: 31, cols: 99 });
    const seen = outputOf(command);
    const said: { type?: string; exit_code?: number }[] = [];
    command.on("message", (message: { type?: string }) => said.push(message));
    await once(command, "spawn");
    command.stdin.write("stty size\r");
    await until("its size is shown", () => /^31 99\r$/m.test(seen.text));
    command.resize(120, 40);
    command.stdin.write("stty size\r");
    await until("its new size is shown", () => /^40 120\r$/m.test(seen.text));
    command.stdin.write("exit 5\r");
    assert.notEqual(await command.wait(), 0);
    assert.equal(said.find(({ type }) => type === "exit")?.exit_code, 5);
    assert.equal(said.find(({ type }) => type === "session_info")?.type, "session_info");
  });
}

function sessions(open: Open): void {
  test("a session outlives its connection, is listed, and shows what it wrote meanwhile", async (t) => {
    const { sprite } = await open(t);
    const first = sprite.createSession("sh");
    const before = outputOf(first);
    await once(first, "spawn");
    first.stdin.write("echo before\r");
    await until("it works", () => /^before\r$/m.test(before.text));
    const [session] = await sprite.listSessions();
    assert.deepEqual([session?.command, session?.tty, session?.isActive], ["sh", true, true]);
    first.stdin.write("sleep 1\recho meanwhile\r");
    await until("it was typed", () => before.text.includes("sleep 1"));
    // Its connection breaks; there is no message for leaving.
    (first as unknown as { wsCmd: { close(): void } }).wsCmd.close();
    await until("nobody is attached", async () => (await sprite.listSessions())[0]?.isActive === false);
    const again = sprite.attachSession(session?.id ?? "");
    const after = outputOf(again);
    await until("it shows what was written before and meanwhile", () =>
      /^before\r$[\s\S]*^meanwhile\r$/m.test(after.text),
    );
    again.stdin.write("echo again\r");
    await until("it goes on", () => /^again\r$/m.test(after.text));
    again.stdin.write("exit\r");
    assert.equal(await again.wait(), 0);
    await until("it is listed no more", async () => (await sprite.listSessions()).length === 0);
  });

  test("a session is killed, with progress", async (t) => {
    const { sprite } = await open(t);
    const command = sprite.spawn("sh", ["-c", "echo on; sleep 3600"], { detachable: true });
    await once(command.stdout, "data");
    const [session] = await sprite.listSessions();
    const events = await linesOf(await sprite.killSession(session?.id ?? "", "SIGTERM", "30s"));
    assert.deepEqual(
      events.map(({ type }) => type),
      ["signal", "exited", "complete"],
    );
    assert.equal(events.at(-1)?.exitCode, 143);
    assert.equal(await command.wait(), 143);
    await assert.rejects(sprite.killSession("none"), { statusCode: 404 });
  });

  test("a command whose client has left ends after the time it was given", async (t) => {
    const { sprite } = await open(t);
    const command = sprite.spawn("sh", ["-c", "echo on; sleep 3600"], { maxRunAfterDisconnect: "1s" });
    await once(command.stdout, "data");
    assert.equal((await sprite.listSessions()).length, 1);
    (command as unknown as { wsCmd: { close(): void } }).wsCmd.close();
    await until("it has ended", async () => (await sprite.listSessions()).length === 0);
  });
}
