/** The lease store over a real etcd. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { EtcdLeases } from "../../src/replication/election/etcd-leases.ts";
import { leaseStoreSuite } from "../../src/replication/election/lease-store.suite.ts";
import { until } from "../support.ts";
import { freePort } from "./replication-support.ts";

/** etcd does not give leases for less than this with its default timing. */
const TTL_MS = 3000;
const installed = spawnSync("etcd", ["--version"], { stdio: "ignore" }).status === 0;

if (installed) {
  let names = 0;
  leaseStoreSuite("etcd", TTL_MS, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "hangar-etcd-"));
    const [client, peer] = [await freePort(), await freePort()];
    const urls = [client, peer].map((port) => `http://127.0.0.1:${port}`);
    const [client_url = "", peer_url = ""] = urls;
    const args = ["--data-dir", dir, "--listen-client-urls", client_url, "--advertise-client-urls", client_url];
    const peers = ["--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url];
    const etcd = spawn("etcd", [...args, ...peers, "--initial-cluster", `default=${peer_url}`], { stdio: "ignore" });
    const closed = once(etcd, "close");
    const close = async (): Promise<void> => {
      etcd.kill("SIGKILL");
      await closed;
      rmSync(dir, { recursive: true, force: true });
    };
    // Also when it never answers.
    t.after(close);
    await until("etcd answers", async () => {
      const answer = await fetch(`${client_url}/health`).catch(() => undefined);
      return answer?.ok === true;
    });
    const name = `test${names++}`;
    return {
      a: new EtcdLeases(client_url, name),
      b: new EtcdLeases(client_url, name),
      // etcd counts in whole seconds and looks for what has run out twice a second.
      pass: (ms) => delay(ms >= TTL_MS ? ms + 2000 : ms),
      close,
    };
  });
} else {
  suite("lease store: etcd", () => {
    test(
      "the suite passes against a real etcd",
      { skip: "etcd is not installed (Debian: etcd-server)" },
      () => undefined,
    );
  });
}
