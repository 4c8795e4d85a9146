/** Many commands over one WebSocket, one after the other, in the messages of the Sprites API. */
import { messageOf } from "#core/assert.ts";
import type { WebSocketSession } from "#http/websocket.ts";
import type { SpriteView } from "../types.ts";
import { execInput, type GivenExec } from "./input.ts";
import type { ExecSession } from "./session.ts";
import type { ExecSessions } from "./sessions.ts";
import { applyControl, applyInput, exitByte, isRevoked, OutputClient, sessionInfo } from "./websocket.ts";

const PREFIX = "control:";

interface Operation {
  session: ExecSession;
  client: OutputClient;
}

interface Start {
  type?: string;
  op?: string;
  args?: GivenExec & { id?: unknown };
}

export async function serveControl(
  socket: WebSocketSession,
  sprite: SpriteView,
  { sessions, signal }: { sessions: ExecSessions; signal: AbortSignal },
): Promise<void> {
  const control = new ControlConnection(socket, sprite, sessions, signal);
  try {
    for await (const message of socket.messages()) await control.take(message);
  } finally {
    control.close();
  }
}

class ControlConnection {
  readonly #socket: WebSocketSession;
  readonly #sprite: SpriteView;
  readonly #sessions: ExecSessions;
  readonly #signal: AbortSignal;
  #running: Operation | undefined;

  constructor(socket: WebSocketSession, sprite: SpriteView, sessions: ExecSessions, signal: AbortSignal) {
    this.#socket = socket;
    this.#sprite = sprite;
    this.#sessions = sessions;
    this.#signal = signal;
  }

  async take(message: string | Buffer): Promise<void> {
    if (typeof message === "string" && message.startsWith(PREFIX)) await this.#start(message.slice(PREFIX.length));
    else if (this.#running) await this.#data(this.#running.session, message);
  }

  close(): void {
    if (!this.#running) return;
    const { session, client } = this.#running;
    session.detach(client);
    if (isRevoked(this.#signal)) session.close();
  }

  async #start(text: string): Promise<void> {
    try {
      const { type, op, args = {} } = JSON.parse(text) as Start;
      if (type !== "op.start") return;
      if (this.#running) throw new Error("an operation is in progress on this connection");
      if (op !== "exec") throw new Error(`there is no operation ${String(op)}: exec`);
      await this.#begin(args);
    } catch (thrown) {
      await this.#say("op.error", { error: messageOf(thrown) });
    }
  }

  async #begin({ id, ...given }: NonNullable<Start["args"]>): Promise<void> {
    const session =
      typeof id === "string"
        ? this.#sessions.get(this.#sprite, id)
        : await this.#sessions.start(this.#sprite, execInput(given), this.#signal);
    await this.#socket.send(sessionInfo(session, id === undefined));
    const client = new OutputClient(this.#socket, session.input.tty, async (how) => {
      this.#running = undefined;
      await this.#say("op.complete", { exitCode: exitByte(how) });
    });
    this.#running = { session, client };
    session.attach(client);
  }

  /** What controls a command comes as JSON in a binary message, between its input. */
  async #data(session: ExecSession, message: string | Buffer): Promise<void> {
    if (typeof message === "string") return applyControl(session, message);
    const text = message.length < CONTROL_BYTES ? message.toString() : "";
    if (/^\{"type":"(resize|signal)"/.test(text) && text.endsWith("}")) applyControl(session, text);
    else await applyInput(session, message);
  }

  async #say(type: string, args: object): Promise<void> {
    await this.#socket.send(`${PREFIX}${JSON.stringify({ type, args })}`);
  }
}

const CONTROL_BYTES = 200;
