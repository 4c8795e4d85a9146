import { Duplex } from "node:stream";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import type { Terminal, TerminalEnd } from "./driver.ts";

/** Reported when the connection to the program's host was lost. */
const CONNECTION_LOST: TerminalEnd = { exit_code: 137, exit_signal: 9 };

/** A terminal on another host, over a WebSocket served by `relayTerminal`. */
export function remoteTerminal(session: WebSocketSession): Terminal {
  const ended = Promise.withResolvers<TerminalEnd>();
  const say = (words: object): void => void session.send(JSON.stringify(words));
  let wanted = Promise.withResolvers<void>();
  const stream = new Duplex({
    read: () => wanted.resolve(),
    write: (keys: Buffer, _, done) => void session.send(keys).then(() => done()),
    destroy: (error, done) => {
      wanted.resolve();
      session.end(CLOSE_CODES.done, "hung up");
      done(error);
    },
  });
  const draw = async (): Promise<void> => {
    for await (const message of session.messages()) {
      if (typeof message === "string") {
        const { ended: how } = JSON.parse(message) as { ended?: TerminalEnd };
        if (how) ended.resolve(how);
        continue;
      }
      // Back-pressure: the remote side sends as much as is read here.
      await wanted.promise;
      if (stream.destroyed) break;
      wanted = Promise.withResolvers();
      stream.push(message);
    }
    ended.resolve(CONNECTION_LOST);
    if (!stream.destroyed) stream.push(null);
  };
  void draw();
  return {
    stream,
    ended: ended.promise,
    resize: (resize) => say({ resize }),
    signal: (signal) => say({ signal }),
    hangUp: () => void stream.destroy(),
  };
}
