/** Programs with separate streams in machines, over a WebSocket between processes of the platform. */
import { PassThrough, type Readable, Writable } from "node:stream";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import type { MachineProcess, TerminalEnd } from "./driver.ts";
import { writeTo } from "./machine-sessions.ts";

/** The first byte of a binary message: the stream that it belongs to. */
const STREAM = { stdin: 0, stdout: 1, stderr: 2, stdin_end: 4 } as const;
/** Reported when the connection to the program's host was lost. */
const CONNECTION_LOST: TerminalEnd = { exit_code: 137, exit_signal: 9 };

interface Said {
  signal?: string;
  ended?: TerminalEnd;
}

const framed = (stream: number, bytes: Uint8Array): Buffer => Buffer.concat([Buffer.of(stream), bytes]);

/** Relays a program until it has ended and its output was read, or the other side has left. */
export async function relayProcess(session: WebSocketSession, program: MachineProcess): Promise<void> {
  const kill = (): void => program.kill();
  if (session.signal.aborted) kill();
  session.signal.addEventListener("abort", kill, { once: true });
  try {
    void forwardInput(session, program);
    const output = [STREAM.stdout, STREAM.stderr].map(async (number) => {
      const stream = number === STREAM.stdout ? program.stdout : program.stderr;
      for await (const piece of stream) await session.send(framed(number, piece as Buffer));
    });
    // The end is reported at once: what the program has left behind may hold its output open for long.
    const ended = program.ended.then((how) => session.send(JSON.stringify({ ended: how })));
    await Promise.all([ended, ...output].map((work) => work.catch(() => {})));
    session.end(CLOSE_CODES.done, "the program has ended");
  } finally {
    session.signal.removeEventListener("abort", kill);
  }
}

async function forwardInput(session: WebSocketSession, program: MachineProcess): Promise<void> {
  try {
    for await (const message of session.messages()) {
      if (typeof message === "string") {
        const { signal } = JSON.parse(message) as Said;
        if (signal !== undefined) program.signal(signal);
      } else if (message[0] === STREAM.stdin_end) program.stdin.end();
      else await writeTo(program.stdin, message.subarray(1));
    }
  } catch {
    session.end(CLOSE_CODES.policy, "the message cannot be read");
  }
}

/** A program on another host, over a WebSocket served by `relayProcess`. */
export function remoteProcess(session: WebSocketSession): MachineProcess {
  const ended = Promise.withResolvers<TerminalEnd>();
  const output = { stdout: new PassThrough(), stderr: new PassThrough() };
  const streams: Readonly<Record<number, PassThrough>> = {
    [STREAM.stdout]: output.stdout,
    [STREAM.stderr]: output.stderr,
  };
  const receive = async (): Promise<void> => {
    for await (const message of session.messages()) {
      if (typeof message !== "string") {
        const stream = streams[message[0] ?? 0];
        if (stream) await writeTo(stream, message.subarray(1));
        continue;
      }
      const { ended: how } = JSON.parse(message) as Said;
      if (how) ended.resolve(how);
    }
    ended.resolve(CONNECTION_LOST);
    for (const stream of Object.values(streams)) stream.end();
  };
  void receive();
  return {
    stdin: new Writable({
      write: (bytes: Buffer, _, done) => void session.send(framed(STREAM.stdin, bytes)).then(() => done()),
      final: (done) => void session.send(framed(STREAM.stdin_end, Buffer.alloc(0))).then(() => done()),
    }),
    ...output,
    ended: ended.promise,
    signal: (signal) => void session.send(JSON.stringify({ signal })),
    kill() {
      session.end(CLOSE_CODES.done, "killed");
      for (const stream of Object.values(streams) as Readable[]) stream.destroy();
    },
  };
}
