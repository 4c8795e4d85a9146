import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ApiError } from "#core/errors.ts";
import { aLaunch, aMachine } from "../fixtures.ts";
import {
  type ExitNotice,
  type Launch,
  LOG_BEGIN,
  type Ref,
  type RuntimeDriver,
  type SuspendKind,
  type Terminal,
} from "./driver.ts";

export interface OpenedDriver {
  driver: RuntimeDriver;
  /** A config of a machine that runs until it is stopped. */
  running: Launch["config"];
  /** A config of a machine that ends by itself at once, with this code. */
  ending: { config: Launch["config"]; exit_code: number };
  /** A config of a machine that writes a line with this text. */
  writing: { config: Launch["config"]; text: string };
  /** A config of a machine that sends back what comes on this TCP port. */
  listening: { config: Launch["config"]; port: number };
  /** The driver after a restart of our own process, over the same box. */
  reopen(): Promise<RuntimeDriver>;
  close(): Promise<void>;
}

const never = new AbortController().signal;
const HOW = { signal: "SIGTERM", timeout_ms: 5000 };

const INTERRUPT = "\u0003";
const WISH = { command: ["sh"], term: "xterm", rows: 24, cols: 80 };

/** Reads a terminal's screen until it shows this. What came before is forgotten. */
async function shows({ stream }: Terminal, wanted: RegExp): Promise<void> {
  for (let screen = ""; !wanted.test(screen); ) {
    const piece = stream.read() as Buffer | null;
    if (piece) screen += piece.toString();
    else if (stream.readableEnded) assert.fail(`the screen ended without ${wanted}: ${screen}`);
    else await once(stream, "readable");
  }
}

/** A shell that has not begun when its terminal closes reads an end of input, and exits as after `exit`. */
async function listens(terminal: Terminal): Promise<void> {
  terminal.stream.write("echo ready\r");
  await shows(terminal, /^ready\r$/m);
}

/**
 * A shell that has shown the line may not have begun to run it, and then the interrupt is the shell's own: it is sent
 * again, with a line after it that shows when the shell listens once more.
 */
async function interrupted(terminal: Terminal): Promise<void> {
  const interrupt = (): boolean => terminal.stream.write(`${INTERRUPT}echo still here\r`);
  const again = setInterval(interrupt, 500);
  try {
    interrupt();
    await shows(terminal, /^still here\r$/m);
  } finally {
    clearInterval(again);
  }
}

/** A connection to a port that its program is about to open. */
async function connected(driver: RuntimeDriver, ref: Ref, port: number): Promise<Duplex> {
  for (;;) {
    try {
      return await driver.connect(ref, port, never);
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.code !== "port_unreachable") throw thrown;
      await setImmediate();
    }
  }
}

const launch = (boot: string, config: Launch["config"]): Launch => aLaunch({ boot, config });

const states = async (driver: RuntimeDriver, known: Parameters<RuntimeDriver["recover"]>[0]) =>
  (await driver.recover(known)).map(({ boot, state }) => `${boot} ${state}`);

type WithDriver = (work: (opened: OpenedDriver, id: string) => Promise<void>) => Promise<void>;

const withDriverOf =
  (open: () => Promise<OpenedDriver>): WithDriver =>
  async (work) => {
    const opened = await open();
    try {
      await work(opened, aMachine().id);
    } finally {
      await opened.driver.destroy(aMachine().id, never);
      await opened.close();
    }
  };

/** A machine may stop at any time, which is not a fault of the platform. */
const STOPPED = { code: "wrong_state" };

/** What a suspend must do, of whichever kind. */
export function suspendSuite(name: string, kind: SuspendKind, open: () => Promise<OpenedDriver>, skip?: string): void {
  const withDriver = withDriverOf(open);
  const suspended = async ({ driver, running }: OpenedDriver, id: string) => {
    const { handle } = await driver.start(launch("b1", running), never);
    const { handle: frozen, ...how } = await driver.suspend({ id, boot: "b1", handle }, never);
    assert.equal(how.kind, kind);
    if (kind === "freeze") assert.ok(how.reason, "a machine that is frozen says why it is not written down");
    const ref = { id, boot: "b1", handle: frozen };
    assert.deepEqual(await states(driver, [ref]), ["b1 frozen"]);
    await assert.rejects(driver.exec(ref, { command: ["true"], timeout_ms: 1000 }, never));
    return ref;
  };

  suite(`suspend by ${kind}: ${name}`, { skip }, () => {
    test("a suspended machine is frozen, resumes the same boot, and loses its memory on a stop", () =>
      withDriver(async (opened, id) => {
        const { driver, running } = opened;
        const ref = await suspended(opened, id);
        assert.deepEqual((await driver.suspend(ref, never)).kind, kind, "suspending it twice is suspending it once");
        assert.ok(!("lost" in (await driver.resume(launch("b1", running), ref.handle, never))));
        assert.deepEqual(await states(driver, [ref]), ["b1 running"]);
        const echo = await driver.exec(ref, { command: ["echo", "on"], timeout_ms: 5000 }, never);
        assert.equal(echo.stdout, "on\n");
        const { handle: again } = await driver.suspend(ref, never);
        assert.equal(await driver.stop({ ...ref, handle: again }, HOW, never), undefined);
        assert.ok("lost" in (await driver.resume(launch("b1", running), again, never)));
      }));

    test("a suspended machine is still suspended after the driver restarts, and resumes", () =>
      withDriver(async (opened, id) => {
        const ref = await suspended(opened, id);
        const after = await opened.reopen();
        assert.deepEqual(await states(after, [ref]), ["b1 frozen"]);
        assert.ok(!("lost" in (await after.resume(launch("b1", opened.running), ref.handle, never))));
        assert.deepEqual(await states(after, [ref]), ["b1 running"]);
        assert.ok(await after.stop(ref, HOW, never));
        await after.destroy(id, never);
        await after.close();
      }));

    test("a suspended machine can be destroyed, and a new boot replaces it", () =>
      withDriver(async (opened, id) => {
        const { driver, running } = opened;
        await suspended(opened, id);
        const { handle } = await driver.start(launch("b2", running), never);
        assert.deepEqual(await states(driver, [{ id, boot: "b2", handle }]), ["b2 running"]);
        await driver.suspend({ id, boot: "b2", handle }, never);
        await driver.destroy(id, never);
        assert.deepEqual(await states(driver, []), []);
      }));
  });
}

/**
 * What every RuntimeDriver must do. A new driver's own test file is one call of this, and one for each kind of
 * suspend.
 */
export function runtimeDriverSuite(name: string, open: () => Promise<OpenedDriver>, skip?: string): void {
  const withDriver = withDriverOf(open);
  suite(`runtime driver: ${name}`, { skip }, () => {
    test("starting a boot twice starts it once; stopping it twice returns the same exit", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        await driver.start(launch("b1", running), never);
        const ref = { id, boot: "b1", handle };
        assert.deepEqual(await states(driver, [ref]), ["b1 running"]);
        const exit = await driver.stop(ref, HOW, never);
        assert.ok(exit);
        assert.deepEqual(await driver.stop(ref, HOW, never), exit);
        assert.deepEqual(await states(driver, [ref]), ["b1 gone"]);
        assert.equal(await driver.stop({ ...ref, boot: "b0" }, HOW, never), undefined);
      }));

    test("an aborted start leaves nothing running", () =>
      withDriver(async ({ driver, running }) => {
        await assert.rejects(driver.start(launch("b1", running), AbortSignal.abort()));
        assert.deepEqual(await states(driver, []), []);
      }));

    test("a new boot replaces a leftover one", () =>
      withDriver(async ({ driver, running }, id) => {
        await driver.start(launch("b1", running), never);
        const { handle } = await driver.start(launch("b2", running), never);
        assert.deepEqual(await states(driver, [{ id, boot: "b2", handle }]), ["b2 running"]);
      }));

    test("an exit notice with the exit code arrives when a machine ends by itself", () =>
      withDriver(async ({ driver, ending }, id) => {
        const heard = Promise.withResolvers<ExitNotice>();
        const end = driver.onExit((notice) => heard.resolve(notice));
        const { handle } = await driver.start(launch("b1", ending.config), never);
        const notice = await heard.promise;
        end();
        assert.deepEqual([notice.id, notice.boot, notice.exit_code], [id, "b1", ending.exit_code]);
        assert.deepEqual(await states(driver, [{ id, boot: "b1", handle }]), ["b1 gone"]);
      }));

    test("after the driver restarts, a machine is found by its handle and can be stopped", () =>
      withDriver(async ({ driver, running, reopen }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const stored = JSON.parse(JSON.stringify(handle)) as typeof handle;
        const after = await reopen();
        const ref = { id, boot: "b1", handle: stored };
        assert.deepEqual(await states(after, [ref]), ["b1 running"]);
        assert.ok(await after.stop(ref, HOW, never));
        await after.destroy(id, never);
        await after.destroy(id, never);
        assert.deepEqual(await states(after, [ref]), ["b1 gone"]);
        await after.close();
      }));

    test("logs are read from a cursor, and a notification announces new lines", () =>
      withDriver(async ({ driver, running, writing }, id) => {
        await driver.start(launch("b1", running), never);
        const { cursor } = await driver.logs(id, { tail: 100 });
        const woken = Promise.withResolvers<void>();
        const end = driver.watchLogs(id, () => woken.resolve());
        await driver.start(launch("b2", writing.config), never);
        const seen: string[] = [];
        for (let at = cursor; !seen.some((line) => line.includes(writing.text)); ) {
          await woken.promise;
          const page = await driver.logs(id, { cursor: at });
          seen.push(...page.lines.map(({ message }) => message));
          if (page.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
          at = page.cursor;
        }
        end();
        const { lines } = await driver.logs(id, { tail: 1 });
        assert.equal(lines.length, 1);
        const [last] = lines;
        const at = last?.timestamp ?? 0;
        assert.deepEqual((await driver.logs(id, { tail: 9, since: at + 1e6 })).lines, []);
        assert.ok((await driver.logs(id, { tail: 9, until: at + 1 })).lines.length > 0);
        assert.ok((await driver.logs(id, { tail: 9, until: at })).lines.every(({ timestamp }) => timestamp < at));
        const all = (await driver.logs(id, { cursor: LOG_BEGIN })).lines;
        assert.ok(all.some(({ message }) => message.includes(writing.text)));
      }));

    test("exec, ps, signals and logs reach a running machine and are refused for one that is not", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const ref = { id, boot: "b1", handle };
        const run = await driver.exec(ref, { command: ["echo", "hi"], timeout_ms: 5000 }, never);
        assert.deepEqual([run.exit_code, run.stdout], [0, "hi\n"]);
        assert.ok((await driver.ps(ref)).length > 0);
        assert.deepEqual((await driver.listening(ref)) ?? [], []);
        await driver.stop(ref, HOW, never);
        await assert.rejects(driver.listening(ref), STOPPED);
        await assert.rejects(driver.exec(ref, { command: ["true"], timeout_ms: 1000 }, never), STOPPED);
        await assert.rejects(driver.signal(ref, "SIGTERM"), STOPPED);
        assert.ok(Array.isArray((await driver.logs(id, { tail: 10 })).lines));
      }));

    test("a terminal can be resized, Ctrl-C ends the program but not the shell, and the exit code is returned", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const terminal = await driver.terminal({ id, boot: "b1", handle }, WISH, never);
        terminal.stream.write("stty size\r");
        await shows(terminal, /^24 80\r$/m);
        terminal.resize({ rows: 33, cols: 101 });
        terminal.stream.write("stty size\r");
        await shows(terminal, /^33 101\r$/m);
        terminal.stream.write("sleep 3600\r");
        await shows(terminal, /sleep 3600\r\n/);
        await interrupted(terminal);
        terminal.stream.write("exit 3\r");
        assert.deepEqual(await terminal.ended, { exit_code: 3 });
        terminal.stream.resume();
        await once(terminal.stream, "end");
        terminal.hangUp();
      }));

    test("a program has separate streams, input that ends, and an exit code", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const ref = { id, boot: "b1", handle };
        const open = async (command: readonly string[]) => await driver.process(ref, { command }, never);
        assert.equal(driver.inUse(id), false);
        const script = await open(["sh", "-c", "echo out; echo err >&2; exit 3"]);
        assert.deepEqual(await Promise.all([text(script.stdout), text(script.stderr)]), ["out\n", "err\n"]);
        assert.deepEqual(await script.ended, { exit_code: 3 });
        script.kill();
        const cat = await open(["cat"]);
        assert.equal(driver.inUse(id), true);
        cat.stdin.end("x".repeat(300_000));
        assert.equal((await text(cat.stdout)).length, 300_000);
        assert.equal((await cat.ended).exit_code, 0);
        cat.kill();
        const missing = await open(["no-such-program"]);
        assert.equal((await missing.ended).exit_code, 127);
        assert.match(await text(missing.stderr), /no-such-program/);
        missing.kill();
      }));

    test("a program has the folder and the variables that were asked for", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const wanted = { command: ["sh", "-c", "pwd; env"], env: { GREETING: "good day" }, folder: "/tmp" };
        const program = await driver.process({ id, boot: "b1", handle }, wanted, never);
        const printed = await text(program.stdout);
        assert.match(printed, /^\/tmp$/m);
        assert.match(printed, /^GREETING=good day$/m);
        program.kill();
      }));

    test("a program ends by a signal, when it is killed, and with its machine", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const ref = { id, boot: "b1", handle };
        const open = async () => await driver.process(ref, { command: ["sh", "-c", "echo on; sleep 3600"] }, never);
        const [signalled, killed, stopped] = await Promise.all([open(), open(), open()]);
        for (const program of [signalled, killed, stopped]) await once(program.stdout, "readable");
        signalled.signal("SIGTERM");
        assert.deepEqual(await signalled.ended, { exit_code: 143, exit_signal: 15 });
        killed.kill();
        killed.kill();
        assert.ok((await killed.ended).exit_code > 0);
        await driver.stop(ref, HOW, never);
        assert.ok((await stopped.ended).exit_code > 0);
        for (const program of [signalled, stopped]) program.kill();
        await assert.rejects(driver.process(ref, { command: ["true"] }, never));
      }));

    test("a connection carries bytes both ways and ends with its machine; a port where nothing listens is refused", () =>
      withDriver(async ({ driver, listening }, id) => {
        const { handle } = await driver.start(launch("b1", listening.config), never);
        const ref = { id, boot: "b1", handle };
        const open = () => connected(driver, ref, listening.port);
        await assert.rejects(driver.connect(ref, 9, never), { code: "port_unreachable" });
        const first = await open();
        first.end("ping\n");
        assert.equal(await text(first), "ping\n", "what was sent before the end comes back after it");
        const second = await open();
        const closed = once(second, "close");
        second.on("error", () => {}).resume();
        await driver.stop(ref, HOW, never);
        await closed;
        await assert.rejects(driver.connect(ref, listening.port, never), STOPPED);
      }));

    test("a terminal ends when one hangs up, and with its machine; there is none where nothing runs", () =>
      withDriver(async ({ driver, running }, id) => {
        const { handle } = await driver.start(launch("b1", running), never);
        const ref = { id, boot: "b1", handle };
        const first = await driver.terminal(ref, WISH, never);
        await listens(first);
        first.hangUp();
        first.hangUp();
        assert.ok((await first.ended).exit_code > 0);
        const second = await driver.terminal(ref, WISH, never);
        await listens(second);
        second.stream.resume();
        await driver.stop(ref, HOW, never);
        assert.ok((await second.ended).exit_code > 0);
        second.hangUp();
        await assert.rejects(driver.terminal(ref, WISH, never), STOPPED);
      }));
  });
}
