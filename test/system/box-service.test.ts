/** The platform as a service of a real systemd: the Debian package, the tarball, and everything that may happen to them. */
import assert from "node:assert/strict";
import { basename } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { Guest } from "../../scripts/prove/box/guest.ts";
import { tempDir } from "../support.ts";
import { BOX, CLAIMS, eventually, LEFTOVERS, noBox, pack, processesOf, runMachine, say } from "./box-support.ts";

const NEXT = "0.1.1";

suite(`${BOX.title}: the service`, { skip: noBox }, () => {
  let guest: Guest;
  let dir = "";
  let packages: { deb: string; tar: string };
  let machine = "";

  const main = async (): Promise<number> => Number(await guest.must("systemctl show hangar -p MainPID --value"));
  const health = "curl -sf -m 20 http://127.0.0.1:4280/healthz";
  const isReady = async (): Promise<string | true> => {
    const { status, stdout } = await guest.run(`${health} && systemctl is-active hangar`);
    return status === 0 || stdout;
  };
  /** Does something to the platform; the machine's processes must be the same before and after it. */
  const uninterrupted = async (t: TestContext, what: string, act: () => Promise<unknown>): Promise<void> => {
    const [before_, began] = [await processesOf(guest, machine), performance.now()];
    await act();
    assert.equal(await processesOf(guest, machine), before_, `${what} interrupted the machine`);
    t.diagnostic(`${what}: ${((performance.now() - began) / 1000).toFixed(0)} s, the machine ran on`);
  };

  before(async () => {
    dir = tempDir("hangar-box");
    say("packing …");
    const [deb = "", tar = ""] = pack(dir, "--format", "deb,tar");
    packages = { deb, tar };
    guest = await Guest.boot(BOX, say);
    for (const file of Object.values(packages)) await guest.put(file, `/root/${basename(file)}`);
    await guest.must("apt-get -qq update");
  });
  after(async () => await guest?.close());

  const install = (file: string): string =>
    `DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --allow-downgrades /root/${basename(file)}`;

  /** The platform as the package brings it, with a machine; each test can be run alone, and uses what one before it has left. */
  const installed = async (): Promise<void> => {
    if (machine !== "") return;
    await guest.must(install(packages.deb));
    await eventually("the platform", isReady);
    await guest.must("hangar apps show hello || hangar apps create hello");
    machine = await runMachine(guest, "hangar", "hello", "--name first");
  };

  test(`${BOX.name}: the Debian package brings a service that is ready, enabled and the platform itself (B1)`, async (t) => {
    await installed();
    const [type, state] = (await guest.must("systemctl show hangar -p Type -p UnitFileState --value"))
      .trim()
      .split("\n");
    assert.deepEqual([type, state], ["notify", "enabled"]);
    const command = await guest.must(`tr '\\0' ' ' < /proc/${await main()}/cmdline`);
    assert.match(command, /^\/usr\/lib\/hangar\/\S+\/node \/usr\/lib\/hangar\/src\/main\.js/);
    assert.match(await guest.must("hangar service status"), /state +active[\s\S]*answers at/);
    assert.match(await guest.must("hangar doctor || true"), /platform +ready/);
    const own = await guest.must(`cat /proc/$(pgrep -f "native/[^ ]*/[m]onitor" | head -n 1)/cgroup`);
    assert.doesNotMatch(own, /hangar\.service/, "the monitor is in the service's cgroup");
    t.diagnostic((await guest.must("systemd-analyze --no-pager | head -n 1; systemctl --version | head -n 1")).trim());
  });

  test(`${BOX.name}: stop, start and restart touch the platform alone (B2)`, async (t) => {
    await installed();
    await uninterrupted(t, "systemctl stop", async () => {
      await guest.must("systemctl stop hangar");
      assert.equal((await guest.must("systemctl show hangar -p Result --value")).trim(), "success");
      assert.notEqual((await guest.run(health)).status, 0, "it still answers");
      assert.equal((await guest.run("pgrep -f hangar/src/[m]ain.js")).stdout, "", "the platform is left behind");
    });
    await uninterrupted(t, "systemctl start", async () => await guest.must(`systemctl start hangar; ${health}`));
    await uninterrupted(t, "systemctl restart", async () => {
      for (let round = 0; round < 2; round++) await guest.must(`systemctl restart hangar; ${health}`);
    });
    assert.match(await guest.must("hangar machines list"), /started/);
    assert.match(await guest.must(`hangar machines exec ${machine} -- /bin/echo inside`), /inside/);
  });

  test(`${BOX.name}: after systemctl kill -9 systemd brings it back (B3)`, async (t) => {
    await installed();
    const pid = await main();
    await uninterrupted(t, "systemctl kill -9", async () => {
      await guest.must("systemctl kill -s KILL hangar");
      await eventually("the platform after a kill", async () =>
        (await main()) === pid ? "the same" : await isReady(),
      );
    });
    assert.match(await guest.must("hangar service status"), /restarts +[1-9]/);
    assert.match(await guest.must("hangar machines list"), /started/);
  });

  test(`${BOX.name}: a platform that hangs is ended by the watchdog and started again (B3)`, async (t) => {
    await installed();
    const quick = "[Service]\nWatchdogSec=30\nTimeoutAbortSec=5\n";
    const file = "/etc/systemd/system/hangar.service.d/quick.conf";
    await guest.must(`mkdir -p $(dirname ${file}); cat > ${file}; systemctl daemon-reload; systemctl restart hangar`, {
      input: quick,
    });
    const pid = await main();
    await uninterrupted(t, "the watchdog", async () => {
      await guest.must(`kill -STOP ${pid}`);
      await eventually("another platform", async () => ((await main()) === pid ? "the same" : await isReady()));
    });
    assert.match(await guest.must("journalctl -u hangar --no-pager"), /watchdog/i);
    await guest.must(`rm -r $(dirname ${file}); systemctl daemon-reload; systemctl restart hangar`);
  });

  test(`${BOX.name}: one that cannot start is tried again until it can, and says why (B3)`, async (t) => {
    await installed();
    await uninterrupted(t, "a crash loop", async () => {
      await guest.must("echo 'listen = \"nowhere\"' >> /etc/hangar/hangar.toml");
      assert.notEqual((await guest.run("systemctl restart hangar")).status, 0);
      await eventually("the third try", async () => {
        const tries = Number(await guest.must("systemctl show hangar -p NRestarts --value"));
        return tries >= 3 || `${tries} tries`;
      });
      assert.match(await guest.must("journalctl -u hangar --no-pager -n 50"), /hangar: .*listen/);
      await guest.must("sed -i /nowhere/d /etc/hangar/hangar.toml");
      await eventually("the platform with its settings mended", isReady);
    });
  });

  test(`${BOX.name}: an upgrade and a rollback of the package keep machines running (B4)`, async (t) => {
    await installed();
    const [next = ""] = pack(dir, "--format", "deb", "--version", NEXT);
    await guest.put(next, `/root/${basename(next)}`);
    await uninterrupted(t, `upgrade to ${NEXT}`, async () => {
      await guest.must(install(next));
      await eventually("the new version", isReady);
      assert.match(await guest.must(health), /0\.1\.1/);
    });
    await uninterrupted(t, "rollback", async () => {
      await guest.must(install(packages.deb));
      await eventually("the old version", isReady);
      assert.doesNotMatch(await guest.must(health), /0\.1\.1/);
    });
    assert.match(await guest.must(`hangar machines exec ${machine} -- /bin/echo inside`), /inside/);
  });

  test(`${BOX.name}: after a reboot the service is there, and machines as their restart policy says (B5)`, async (t) => {
    await installed();
    const id = await runMachine(guest, "hangar", "hello", "--name always --restart always");
    const took = await guest.reboot();
    await eventually("the platform after a reboot", isReady);
    await eventually("the machine", async () => {
      const { state } = JSON.parse(await guest.must(`hangar machines show ${id} --json`)) as { state: string };
      return state === "started" || state;
    });
    await processesOf(guest, id);
    t.diagnostic(`the box was back after ${took.toFixed(0)} s, with a machine of restart policy always`);
  });

  test(`${BOX.name}: removing the package keeps the data, purging it leaves nothing (B6)`, async () => {
    await installed();
    await guest.must("DEBIAN_FRONTEND=noninteractive apt-get -qq remove -y hangar");
    assert.match(await guest.must("ls /var/lib/hangar"), /hangar\.db/);
    const left = (await guest.must(LEFTOVERS))
      .split("\n")
      .filter((line) => line && !/^\/(var\/lib|etc)\/hangar$/.test(line));
    assert.deepEqual(left, []);
    await guest.must(install(packages.deb));
    await eventually("the platform of the same data", isReady);
    assert.match(await guest.must("hangar machines list"), new RegExp(machine));
    await guest.must("DEBIAN_FRONTEND=noninteractive apt-get -qq purge -y hangar");
    assert.equal((await guest.must(`${LEFTOVERS} ${CLAIMS}`)).trim(), "");
  });

  test(`${BOX.name}: the tarball's own commands install and uninstall it (B6)`, async () => {
    await guest.must(`mkdir -p /opt; tar -xzf /root/${basename(packages.tar)} -C /opt`);
    const hangar = "/opt/hangar/bin/hangar";
    assert.match(await guest.must(`${hangar} service status || [ $? = 3 ]`), /hangar\.service is not installed/);
    await guest.must(`${hangar} service install --data-dir '/srv/my data'`);
    await eventually("the platform of the tarball", isReady);
    assert.match(await guest.must("cat '/srv/my data/address'"), /4280/);
    assert.match(await guest.must(`${hangar} service status`), /data dir +\/srv\/my data/);
    // Without a machine it takes its part of the cgroup tree along.
    await guest.must("systemctl stop hangar");
    assert.equal((await guest.must("systemctl show hangar -p Result --value")).trim(), "success");
    assert.equal((await guest.must("find /sys/fs/cgroup -name 'hangar-*.scope'")).trim(), "");
    const { status, stderr } = await guest.run(`${hangar} service uninstall`);
    assert.equal(status, 2);
    assert.match(stderr, /--yes.*--keep-data/);
    await guest.must(`${hangar} service uninstall --keep-data`);
    await guest.must("test -f '/srv/my data/hangar.db'");
    await guest.must(`${hangar} service install --data-dir '/srv/my data'`);
    await guest.must(`${hangar} service uninstall --yes`);
    assert.equal((await guest.must(`${LEFTOVERS} ${CLAIMS} ls -d '/srv/my data' 2> /dev/null || true`)).trim(), "");
  });
});
