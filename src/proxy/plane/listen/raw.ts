import type { Socket } from "node:net";
import type { PendingRequest } from "../balance/pending-request.ts";
import type { Route } from "../balance/route.ts";
import type { Peer } from "../header-rewrite.ts";
import { splice } from "../splice.ts";
import { Traffic } from "../traffic.ts";
import type { PlaneServices } from "../types.ts";

/** Proxies a raw TCP connection once there is a machine for it. `early` was already read. */
export function passRaw(client: Socket, route: Route, peer: Peer, plane: PlaneServices, early: Buffer): void {
  route.counters.connected();
  client.pause();
  const traffic = new Traffic(client);
  const count = (): void => traffic.report(route);
  const watched = { sweep: count, drain: (): void => {}, cut: (): void => void client.destroy() };
  plane.watch(watched);
  const pending: PendingRequest = {
    kind: "socket",
    fresh: true,
    preface: plane.preface(route, peer),
    since: 0,
    refused_at: undefined,
    aborted: false,
    got: (_target, machine) => splice(client, machine as Socket, { plane, count, early, answer: NOTHING }),
    // A raw connection can only be closed.
    refused: () => void client.destroy(),
  };
  client.once("close", () => {
    pending.aborted = true;
    count();
    plane.unwatch(watched);
    route.counters.disconnected();
  });
  route.obtain(pending);
}

const NOTHING = Buffer.alloc(0);
