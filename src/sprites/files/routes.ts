import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { type Guard, orgOf } from "#http/access.ts";
import { type Exchange, type Row, route } from "#http/route.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import { SPRITE_ROW, WAKE_ERRORS } from "../route-row.ts";
import type { SpriteService } from "../service.ts";
import type { Watches } from "../watches.ts";
import type { FileHelper } from "./helper.ts";
import { fileMode, filePath } from "./input.ts";
import * as operations from "./operations.ts";
import * as schema from "./schema.ts";
import { receiveFile, sendFile, type WriteInput } from "./transfer.ts";
import { watchFiles } from "./watch.ts";

export interface FileRouteParts {
  sprites: SpriteService;
  helper: FileHelper;
  watches: Watches;
  guard: Pick<Guard, "admit">;
  clock: Clock;
}

const ERRORS = ["file_denied", "file_conflict", "file_failed", ...WAKE_ERRORS] as const;

export function fileRoutes(parts: FileRouteParts): Row[] {
  return [...contentRoutes(parts), ...lookRoutes(parts), ...changeRoutes(parts), watchRoute(parts)];
}

function contentRoutes(parts: FileRouteParts): Row[] {
  const relayed = { ...SPRITE_ROW, errors: ERRORS, handle: () => Promise.reject(new Error("a relayed request")) };
  return [
    {
      ...relayed,
      method: "GET",
      path: "/v1/sprites/:sprite_name/fs/read",
      summary: "Read a file of a sprite",
      description: "Paths are those of the sprite, whose root no path and no link leaves.",
      query: schema.PathQuery,
      response: { status: 200, type: "*/*" },
      relay: (exchange) => read(parts, exchange),
    },
    {
      ...relayed,
      method: "PUT",
      path: "/v1/sprites/:sprite_name/fs/write",
      summary: "Write a file of a sprite",
      description:
        "The body is the file, of any type and length. It has its name once all of it is on the disk: a reader sees the old " +
        "file or the new one. A link is followed; what is replaced keeps its owner, and its mode unless one is given. Without " +
        "`mkdirParents` a file named `.keep` makes the folder that it is in.",
      query: schema.WriteQuery,
      response: { status: 200, schema: schema.Written },
      relay: (exchange) => write(parts, exchange),
    },
  ];
}

/** The sprite and the query of a relayed request, which are not read before. */
async function transferOf({ sprites, helper, guard, clock }: FileRouteParts, exchange: Exchange) {
  const url = new URL(exchange.request.url ?? "/", "http://localhost");
  const { org_slug, ...query } = Object.fromEntries(url.searchParams) as Record<string, string | undefined>;
  const admit = async (who: Exchange["caller"]) => orgOf(await guard.admit(who, SPRITE_ROW.access, { org_slug }));
  const org = await admit(exchange.caller);
  const sprite = await sprites.get(org.id, decodeURIComponent(url.pathname.split("/")[3] ?? ""));
  const left = new AbortController();
  exchange.response.once("close", () => left.abort(new ApiError("request_timeout", "the client has disconnected")));
  const signal = AbortSignal.any([exchange.whileAllowed(admit), left.signal]);
  return { query, transfer: { helper, sprite, signal, exchange, clock } };
}

async function read(parts: FileRouteParts, exchange: Exchange): Promise<void> {
  const { query, transfer } = await transferOf(parts, exchange);
  await sendFile(transfer, filePath(query["path"], query["workingDir"]));
}

async function write(parts: FileRouteParts, exchange: Exchange): Promise<void> {
  const { query, transfer } = await transferOf(parts, exchange);
  const path = filePath(query["path"], query["workingDir"]);
  const mode = fileMode(query["mode"]);
  const written = await receiveFile(transfer, { path, mode, ...foldersOf(path, mode, query) });
  exchange.takeOver();
  const { response } = exchange;
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(written));
}

/** The SDK makes a folder by a file `.keep` in it, which it removes, with the mode that the folder shall have. */
function foldersOf(
  path: string,
  mode: string,
  query: Record<string, string | undefined>,
): Omit<WriteInput, "path" | "mode"> {
  const is_folder = path.endsWith("/.keep");
  const folder_mode = is_folder ? mode : "";
  if ((query["mkdirParents"] ?? query["mkdir"]) === "true") return { parents: "all", folder_mode };
  return { parents: is_folder ? "last" : "none", folder_mode };
}

function lookRoutes({ sprites, helper }: FileRouteParts): Row[] {
  return [
    route("GET /v1/sprites/:sprite_name/fs/list", {
      ...SPRITE_ROW,
      summary: "List a folder of a sprite; of a file, that file",
      query: schema.ListQuery,
      response: { status: 200, schema: schema.Listed },
      errors: ERRORS,
      async handle({ params, query, signal, ...call }) {
        const { path: given, workingDir, recursive = false, pattern } = query;
        const path = filePath(given, workingDir);
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        const input = { path, recursive, ...(pattern === undefined ? {} : { pattern }) };
        const entries = await operations.listFiles({ helper, sprite, signal }, input);
        return { path, entries, count: entries.length };
      },
    }),
    route("GET /v1/sprites/:sprite_name/fs/stat", {
      ...SPRITE_ROW,
      summary: "Show one file or folder of a sprite; of a link, where it points to",
      query: schema.PathQuery,
      response: { status: 200, schema: schema.Stat },
      errors: ERRORS,
      async handle({ params, query, signal, ...call }) {
        const path = filePath(query.path, query.workingDir);
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        return await operations.statFile({ helper, sprite, signal }, path);
      },
    }),
  ];
}

function changeRoutes(parts: FileRouteParts): Row[] {
  return [deleteRoute(parts), ...moveRoutes(parts), ...attributeRoutes(parts)];
}

const deleteRoute = ({ sprites, helper }: FileRouteParts): Row =>
  route("DELETE /v1/sprites/:sprite_name/fs/delete", {
    ...SPRITE_ROW,
    summary: "Delete a file or an empty folder of a sprite; with `recursive` a folder with what is in it",
    description:
      "A link is deleted, not what it points to. A folder that something is mounted on stays. At most 1000 paths are named.",
    query: schema.DeleteQuery,
    response: { status: 200, schema: schema.Deleted },
    errors: ERRORS,
    async handle({ params, query, signal, ...call }) {
      const path = filePath(query.path, query.workingDir);
      const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
      return await operations.deleteFile({ helper, sprite, signal }, { path, recursive: query.recursive ?? false });
    },
  });

function moveRoutes({ sprites, helper }: FileRouteParts): Row[] {
  return [
    route("POST /v1/sprites/:sprite_name/fs/rename", {
      ...SPRITE_ROW,
      summary: "Rename a file or folder of a sprite",
      body: schema.RenameBody,
      response: { status: 200, schema: schema.Moved },
      errors: ERRORS,
      async handle({ params, body, signal, ...call }) {
        const [source, dest] = pair(body);
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        await operations.changeFile({ helper, sprite, signal }, ["rename", source, dest]);
        return { source, dest };
      },
    }),
    route("POST /v1/sprites/:sprite_name/fs/copy", {
      ...SPRITE_ROW,
      summary: "Copy a file of a sprite; with `recursive` a folder, whose links stay links",
      body: schema.CopyBody,
      response: { status: 200, schema: schema.Moved },
      errors: ERRORS,
      async handle({ params, body, signal, ...call }) {
        const [source, dest] = pair(body);
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        const how = [operations.flag(body.recursive), operations.flag(body.preserveAttrs)];
        await operations.changeFile({ helper, sprite, signal }, ["copy", source, dest, ...how]);
        return { source, dest };
      },
    }),
  ];
}

const pair = ({ source, dest, workingDir }: schema.RenameBody): [string, string] => [
  filePath(source, workingDir, "source"),
  filePath(dest, workingDir, "dest"),
];

function attributeRoutes({ sprites, helper }: FileRouteParts): Row[] {
  return [
    route("POST /v1/sprites/:sprite_name/fs/chmod", {
      ...SPRITE_ROW,
      summary: "Change the mode of a file or folder of a sprite",
      body: schema.ChmodBody,
      response: { status: 200, schema: schema.Changed },
      errors: ERRORS,
      async handle({ params, body, signal, ...call }) {
        const path = filePath(body.path, body.workingDir);
        const mode = fileMode(body.mode) || fail("invalid_request", "mode is missing");
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        await operations.changeFile({ helper, sprite, signal }, ["chmod", path, mode, operations.flag(body.recursive)]);
        return { path };
      },
    }),
    route("POST /v1/sprites/:sprite_name/fs/chown", {
      ...SPRITE_ROW,
      summary: "Change the owners of a file or folder of a sprite, by number or by the sprite's own names",
      body: schema.ChownBody,
      response: { status: 200, schema: schema.Changed },
      errors: ERRORS,
      async handle({ params, body, signal, ...call }) {
        const path = filePath(body.path, body.workingDir);
        const { uid, gid, recursive = false } = body;
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        const owners = { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) };
        await operations.changeOwner({ helper, sprite, signal }, { path, recursive, ...owners });
        return { path };
      },
    }),
  ];
}

const watchRoute = ({ sprites, helper, watches, clock }: FileRouteParts): Row =>
  route("GET /v1/sprites/:sprite_name/fs/watch", {
    ...SPRITE_ROW,
    summary: "Watch files of a sprite, over WebSocket",
    description:
      'The first message is `{"type": "subscribe", "paths": ["/srv"], "recursive": true, "workingDir": "/"}`. The answers are ' +
      '`{"type": "subscribed", "paths": […]}`, then `{"type": "event", "event": "write", "path": …, "isDir": …, "size": …, ' +
      '"timestamp": …}` with the events `create`, `write`, `remove`, `rename` and `chmod`, or `{"type": "error", "message": …}`. ' +
      `The sprite stays awake meanwhile. Recursion watches at most ${SPRITE_LIMITS.file_watches} folders.`,
    query: schema.WatchQuery,
    response: { status: 101 },
    errors: ["upgrade_required", ...ERRORS],
    async handle({ params, ...call }) {
      await sprites.get(orgOf(call).id, params.sprite_name);
      fail("upgrade_required", "a watch is a WebSocket", { headers: { upgrade: "websocket", connection: "upgrade" } });
    },
    async websocket({ params, ...call }, accept) {
      const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
      await watches.during(sprite, () => watchFiles(accept(), { helper, sprite, clock }));
    },
  });
