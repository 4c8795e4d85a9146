/** Changes of files as they happen, in the messages of the Sprites API. */
import { messageOf } from "#core/assert.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteView } from "../types.ts";
import { fieldsOf, groupsOf } from "./fields.ts";
import type { FileHelper } from "./helper.ts";
import { filePath } from "./input.ts";
import { flag } from "./operations.ts";

interface Subscribe {
  type?: unknown;
  paths?: unknown;
  recursive?: unknown;
  workingDir?: unknown;
}

/** Event, path, whether it is a folder, size. */
const EVENT_FIELDS = 4;

/** The first message says what to watch. The watch lasts until the client leaves. */
export async function watchFiles(
  socket: WebSocketSession,
  { helper, sprite, clock }: { helper: FileHelper; sprite: SpriteView; clock: Clock },
): Promise<void> {
  const messages = socket.messages();
  const say = (message: object): Promise<void> => socket.send(JSON.stringify(message));
  try {
    const { value: first } = await messages.next();
    if (first === undefined) return;
    const { paths, recursive } = subscribed(first.toString());
    void ignore(messages);
    const call = { words: ["watch", flag(recursive), ...paths], path: paths.join(", ") };
    await helper.beside(sprite, call, socket.signal, async (run) => {
      for await (const [event = "", path = "", is_dir, size] of groupsOf(fieldsOf(run.stdout), EVENT_FIELDS)) {
        const timestamp = isoTime(clock.now());
        if (event === "subscribed") await say({ type: "subscribed", paths });
        else if (event === "overflow")
          await say({ type: "error", message: "too many changes at once: some are missing" });
        else await say({ type: "event", event, path, isDir: is_dir === "1", size: Number(size), timestamp });
      }
      await run.finished();
    });
  } catch (thrown) {
    if (socket.signal.aborted) return;
    await say({ type: "error", message: messageOf(thrown) });
    socket.end(CLOSE_CODES.done, "the watch has ended");
  }
}

/** Reads on, so that the end of the connection is seen. */
async function ignore(messages: AsyncIterator<unknown>): Promise<void> {
  while (!(await messages.next()).done);
}

function subscribed(text: string): { paths: string[]; recursive: boolean } {
  const { type, paths, recursive, workingDir } = JSON.parse(text) as Subscribe;
  const most = SPRITE_LIMITS.file_watch_paths;
  if (type !== "subscribe" || !Array.isArray(paths) || paths.length === 0 || paths.length > most)
    fail(
      "invalid_request",
      `the first message is {"type": "subscribe", "paths": […]} with 1 to ${most} paths (limit file_watch_paths)`,
    );
  const folder = typeof workingDir === "string" ? workingDir : undefined;
  return {
    paths: paths.map((path: unknown) => filePath(typeof path === "string" ? path : undefined, folder, "paths")),
    recursive: recursive === true,
  };
}
