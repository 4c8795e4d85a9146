import { Duplex } from "node:stream";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import type { Terminal, TerminalEnd } from "./driver.ts";

/** Told of a program of which nothing more was heard: its host is gone, or the way to it. */
const CONNECTION_LOST: TerminalEnd = { exit_code: 137, exit_signal: 9 };

/** A terminal at the other end of a line, where `converse` speaks for it. */
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
      // As much as is read here is taken there: the program that draws stands still while nobody looks.
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
