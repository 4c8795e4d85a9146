import { PROXY_LIMITS } from "../limits.ts";
import type { Refusal } from "./balance/pending-request.ts";
import type { Route } from "./balance/route.ts";
import { type OwnResponse, type Peer, redirectResponse } from "./header-rewrite.ts";
import type { RequestHead } from "./http1/head.ts";
import type { PlaneServices } from "./types.ts";

const CHALLENGE = "/.well-known/acme-challenge/";

type DispatchRequest = Pick<RequestHead, "host" | "authority" | "method" | "target" | "accepts">;
export type Dispatch = (head: DispatchRequest) => Dispatched;
type Dispatched = { route: Route } | { answer: (request_id: string) => OwnResponse } | { refusal: Refusal };

/** Routes a request to an app, or answers it here. With TLS, SNI and Host must belong to the same app. */
export function dispatcher(
  listener: { find(name: string): Route | undefined; port: number },
  plane: PlaneServices,
  peer: Peer,
  sni: Route | undefined,
): Dispatch {
  return (head) => {
    const own = challenge(head, plane, peer);
    if (own) return own;
    const route = listener.find(head.host);
    if (!route) return { refusal: unknownHost(head.host, listener.port) };
    if (sni && route.app.app_id !== sni.app.app_id) return { refusal: MISDIRECTED };
    if (route.table.options.force_https && !peer.secure) return secured(head, route);
    return { route };
  };
}

const MISDIRECTED: Refusal = {
  status: 421,
  reason: "misdirected",
  text: "this connection was opened for another name; open a new one",
};

/** The response to an ACME http-01 challenge. */
function challenge({ target }: DispatchRequest, plane: PlaneServices, peer: Peer): Dispatched | undefined {
  if (peer.secure || !target.startsWith(CHALLENGE)) return undefined;
  const token = target.slice(CHALLENGE.length);
  // The client chooses the token, which could be `constructor`.
  const answer = Object.hasOwn(plane.challenges, token) ? plane.challenges[token] : undefined;
  return answer === undefined ? undefined : { answer: (request_id) => plainResponse(answer, request_id) };
}

function secured({ authority, target }: DispatchRequest, { table }: Route): Dispatched {
  const name = authority.replace(/:\d+$/, "");
  const { https_port } = table.options;
  const location = `https://${name}${https_port === 443 ? "" : `:${https_port}`}${target}`;
  return { answer: (request_id) => redirectResponse(location, request_id) };
}

function unknownHost(host: string, port: number): Refusal {
  const shown = host === "" ? "a request without a host name" : host.slice(0, 255);
  return {
    status: 404,
    reason: "unknown_host",
    text: `no app answers to ${shown} on port ${port}; use the host name <app>.<domain>, or add a certificate for the name to its app`,
  };
}

function plainResponse(body: string, request_id: string): OwnResponse {
  return {
    status: 200,
    reason: "OK",
    fields: [
      ["content-type", "text/plain"],
      ["svc-request-id", request_id],
    ],
    body: body.slice(0, PROXY_LIMITS.head_bytes),
  };
}
