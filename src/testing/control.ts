import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { messageOf } from "#core/assert.ts";
import { sameSecret } from "#core/same-secret.ts";
import { parseJson } from "#http/json.ts";
import { HTTP_BOUNDS, strictly } from "#http/strict-server.ts";
import type { Crash, Emulator } from "./emulator.ts";
import type { Fault } from "./fault.ts";

/** A parsed control request. */
interface ControlRequest {
  body: Buffer;
  /** What the path has in the place of `*`. */
  name: string;
}

type Handler = (emulator: Emulator, request: ControlRequest) => Promise<unknown>;

const clockOf = ({ clock }: Emulator) => ({ now: new Date(clock.now()).toISOString(), frozen: clock.frozen });
const json = ({ body }: ControlRequest): Record<string, unknown> =>
  body.length === 0 ? {} : (parseJson(body.toString()) as Record<string, unknown>);

/** The emulator for programs that are not in its process. It is no part of the API that it emulates. */
const ROUTES: Record<string, Handler> = {
  "GET /clock": async (emulator) => clockOf(emulator),
  async "POST /clock"(emulator, request) {
    const { advance, frozen } = json(request);
    if (frozen === true) emulator.clock.freeze();
    if (frozen === false) emulator.clock.flow();
    if (advance !== undefined) await emulator.clock.advance(advance as string | number);
    return clockOf(emulator);
  },
  "GET /faults": async ({ faults }) => faults.list(),
  async "POST /faults"({ faults }, request) {
    const fault = json(request);
    if (typeof fault["route"] !== "string" && typeof fault["host"] !== "string")
      throw new TypeError("a fault has a route, such as POST /v1/apps, or a host call, such as start");
    faults.add(fault as unknown as Fault);
    return faults.list();
  },
  "DELETE /faults": async ({ faults }) => {
    faults.clear();
    return [];
  },
  "POST /machines/*/crash": async (emulator, request) => ({
    crashed: emulator.crash(request.name, json(request) as Crash),
  }),
  "POST /reset": async (emulator) => {
    await emulator.reset();
    return clockOf(emulator);
  },
  "GET /state": (emulator) => emulator.save(),
  "PUT /state": async (emulator, { body }) => {
    await emulator.load(body);
    return clockOf(emulator);
  },
};

/** The control API on its own address, for clients with the emulator's token. */
export async function openControl(
  emulator: Emulator,
  at: { host: string; port: number },
): Promise<{ url: string; close(): void }> {
  const server = createServer(
    HTTP_BOUNDS,
    strictly((request, response) => void answer(emulator, request, response)),
  );
  const listening = once(server, "listening");
  server.listen(at.port, at.host);
  await listening;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${at.host.includes(":") ? `[${at.host}]` : at.host}:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(emulator: Emulator, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const say = (status: number, value: unknown): void => {
    const bytes = value instanceof Uint8Array;
    response.writeHead(status, { "content-type": bytes ? "application/octet-stream" : "application/json" });
    response.end(bytes ? value : `${JSON.stringify(value)}\n`);
  };
  try {
    if (!sameSecret(request.headers.authorization ?? "", `Bearer ${emulator.token}`))
      return say(401, { error: "send the emulator's token: Authorization: Bearer …" });
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    const [, name = ""] = /^\/machines\/(\w+)\/crash$/.exec(path) ?? [];
    const handler = ROUTES[`${request.method} ${name ? "/machines/*/crash" : path}`];
    if (!handler) return say(404, { error: `the emulator has ${Object.keys(ROUTES).join(", ")}` });
    say(200, await handler(emulator, { body: await buffer(request), name }));
  } catch (thrown) {
    say(400, { error: messageOf(thrown) });
  }
}
