import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type BuildHost, buildHost } from "./site.ts";

const host = (id: string, more: Partial<BuildHost> = {}): BuildHost => ({
  id,
  state: "ok",
  cordoned: false,
  address: "127.0.0.1:1",
  facts: { builds: "yes" },
  ...more,
});
const ORGS = Array.from({ length: 300 }, (_, index) => `o${index}`);

suite("host that builds for an organization", () => {
  test("is the same whatever the order, and organizations are spread over the hosts", () => {
    const hosts = ["0001", "0002", "0003"].map((id) => host(id));
    const counts = new Map<string, number>();
    for (const org of ORGS) {
      const id = buildHost(org, hosts)?.id ?? "";
      assert.equal(buildHost(org, hosts.toReversed())?.id, id);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    for (const { id } of hosts) assert.ok((counts.get(id) ?? 0) > ORGS.length / 5, JSON.stringify([...counts]));
  });

  test("changes only for organizations of the removed host", () => {
    const all = ["0001", "0002", "0003"].map((id) => host(id));
    const left = all.slice(1);
    for (const org of ORGS) {
      const before = buildHost(org, all)?.id;
      if (before !== "0001") assert.equal(buildHost(org, left)?.id, before);
    }
  });

  test("can build, is reachable and not lost; a cordoned one only builds when there is no other", () => {
    const unable = [
      host("0001", { facts: { builds: "buildah is not installed" } }),
      host("0002", { facts: {} }),
      host("0003", { state: "failed" }),
      host("0004", { address: "" }),
    ];
    assert.equal(buildHost("o1", unable), undefined);
    const cordoned = host("0005", { cordoned: true });
    assert.equal(buildHost("o1", [...unable, cordoned])?.id, "0005");
    for (const org of ORGS) assert.equal(buildHost(org, [cordoned, host("0006")])?.id, "0006");
  });
});
