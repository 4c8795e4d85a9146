import type { WebSocketSession } from "#http/websocket.ts";
import type { Terminal, TerminalEnd } from "./driver.ts";
import { sessionStream } from "./machine-sessions.ts";

/** Reported when the connection to the program's host was lost. */
const CONNECTION_LOST: TerminalEnd = { exit_code: 137, exit_signal: 9 };

/** A terminal on another host, over a WebSocket served by `relayTerminal`. */
export function remoteTerminal(session: WebSocketSession): Terminal {
  const ended = Promise.withResolvers<TerminalEnd>();
  const send = (message: object): void => void session.send(JSON.stringify(message));
  const stream = sessionStream(session, {
    onText(text) {
      const { ended: how } = JSON.parse(text) as { ended?: TerminalEnd };
      if (how) ended.resolve(how);
      return undefined;
    },
    onGone() {
      ended.resolve(CONNECTION_LOST);
      return undefined;
    },
  });
  return {
    stream,
    ended: ended.promise,
    resize: (resize) => send({ resize }),
    signal: (signal) => send({ signal }),
    hangUp: () => void stream.destroy(),
  };
}
