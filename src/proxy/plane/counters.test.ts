import assert from "node:assert/strict";
import { test } from "node:test";
import { PROXY_LIMITS } from "../limits.ts";
import { EdgeCounters } from "./counters.ts";

test("server names that clients invent are counted separately only up to handshake_names", () => {
  const counters = new EdgeCounters("o1", { app: "web" });
  const { handshake_names } = PROXY_LIMITS;
  for (let round = 0; round < 2; round++)
    for (let i = 0; i < 10 * handshake_names; i++) counters.handshakeFailed(`name-${i}.example`);
  const reported = counters.take().filter(({ name }) => name === "svc_edge_tls_handshake_errors");
  assert.equal(reported.length, handshake_names + 1);
  const counted = (servername: string | undefined) =>
    reported.find(({ labels }) => labels["servername"] === servername)?.by;
  assert.equal(counted("name-0.example"), 2);
  assert.equal(counted("") ?? counted(undefined), 2 * 9 * handshake_names);
});
