/** A real volume that fills up inside a Debian machine grows by a share of its size, and the machine's log says so. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { type DebianPlatform, debianPlatform } from "./debian-platform.ts";

const skip = volumesMissing() ?? realMachinesMissing() ?? packagesMissing(["coreutils", "util-linux"]);

suite("autoextend of a real volume", { skip }, () => {
  let debian: DebianPlatform;
  before(async () => {
    debian = await debianPlatform(["coreutils", "util-linux"]);
  });
  after(() => debian.close());

  test("a volume grows by add_size_percent up to size_gb_limit; a needed restart is reported and clears it", async (t) => {
    const { ask } = debian;
    const { id: volume } = await ask("POST /volumes", { name: "data", size_gb: 1 });
    const grows = { extend_threshold_percent: 50, add_size_percent: 100, size_gb_limit: 2 };
    const id = await debian.machine({
      image: "debian",
      init: { exec: ["/usr/bin/sleep", "infinity"] },
      stop_config: { signal: "SIGKILL" },
      mounts: [{ volume, path: "/data", ...grows }],
    });
    const exec = async (...command: string[]): Promise<string> => {
      const { exit_code, stdout, stderr } = await ask(`POST /machines/${id}/exec`, { command, timeout: 60 });
      assert.equal(exit_code, 0, stderr);
      return stdout;
    };
    await exec("/usr/bin/fallocate", "-l", "700M", "/data/filled");
    await until("it has 2 GB", async () => (await ask(`GET /volumes/${volume}`)).size_gb === 2);
    const grown = await until("the machine's log tells", async () =>
      (await debian.events(id)).find(({ type }) => type === "volume_extended"),
    );
    const { needs_restart } = await ask(`GET /volumes/${volume}`);
    t.diagnostic(`needs a restart here: ${needs_restart}`);
    assert.equal(grown.request?.["needs_restart"], needs_restart);
    assert.match(grown.request?.reason ?? "", /grew from 1 to 2 GB/);
    assert.equal(/restart the machine/.test(grown.request?.reason ?? ""), needs_restart);
    await ask(`POST /machines/${id}/restart`);
    await until("it runs again", async () => (await ask(`GET /machines/${id}`)).state === "started");
    assert.equal((await ask(`GET /volumes/${volume}`)).needs_restart, false);
    const kilobytes = Number((await exec("/usr/bin/df", "--output=size", "/data")).split("\n")[1]);
    assert.ok(kilobytes > 1.8 * 1024 * 1024, `the machine sees ${kilobytes} KB`);
  });
});
