import { PROXY_LIMITS } from "../limits.ts";
import type { Dispatch, Dispatched } from "./client.ts";
import { type OwnAnswer, type Peer, redirectAnswer } from "./passage.ts";
import type { Plane } from "./plane.ts";
import type { Route } from "./route.ts";

const CHALLENGE = "/.well-known/acme-challenge/";

/**
 * Decides what becomes of a request: passed to an app, or answered here. With TLS, the name in the hello and
 * the one in the request must lead to the same app.
 */
export function dispatcher(
  door: { find(name: string): Route | undefined; port: number },
  plane: Plane,
  peer: Peer,
  sni: Route | undefined,
): Dispatch {
  return ({ host, authority, target }): Dispatched => {
    if (target.startsWith(CHALLENGE) && !peer.secure) {
      const answer = plane.challenges[target.slice(CHALLENGE.length)];
      if (answer !== undefined) return { answer: (request_id) => plainAnswer(answer, request_id) };
    }
    const route = door.find(host);
    if (!route) return { refusal: unknownHost(host, door.port) };
    if (sni && route.app.app_id !== sni.app.app_id) {
      const text = "this connection was opened for another name; open a new one";
      return { refusal: { status: 421, reason: "misdirected", text } };
    }
    const { options } = route.table;
    if (options.force_https && !peer.secure) {
      const name = authority.replace(/:\d+$/, "");
      const port = options.https_port === 443 ? "" : `:${options.https_port}`;
      return { answer: (request_id) => redirectAnswer(`https://${name}${port}${target}`, request_id) };
    }
    return { route };
  };
}

function unknownHost(host: string, port: number): { status: number; reason: string; text: string } {
  const shown = host === "" ? "a request without a host name" : `${host.slice(0, 255)}`;
  return {
    status: 404,
    reason: "unknown_host",
    text: `no app answers to ${shown} on port ${port}; ask for <app>.<domain>, or add a certificate for the name to its app`,
  };
}

function plainAnswer(body: string, request_id: string): OwnAnswer {
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
