/**
 * Three hosts on boxes of their own with real machines, and a cable that is pulled: the host behind it still runs, and
 * nobody can reach it. Its machines stand still before others begin, nothing runs twice, standbys are up within two
 * leases, and what it left behind is cleared away when the cable is back. The database is restarted under load.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs } from "../support.ts";
import { aHouse, type ControlBox, type HostBox } from "./hosts-house.ts";
import { until } from "./hosts-support.ts";

const MACHINES = "/v1/apps/web/machines";
const COUNT = runs(6, 60);
const LEASE_S = runs(4, 15);
/** Says the time again and again, by the clock that all machines of a box share. */
const TICK = "trap 'exit 0' TERM INT; while :; do read u _ < /proc/uptime; echo tick $u; sleep 0.1; done";
const CONFIG = {
  image: "busybox",
  init: { exec: ["sh", "-c", TICK] },
  guest: { cpus: 1, memory_mb: 256 },
};
const MOVES = { ...CONFIG, metadata: { hangar_on_host_loss: "move" } };

interface Shown {
  id: string;
  host: string;
  state: string;
  host_status: string;
}

/** When a machine ticked on a host, in seconds since the box was started. */
function ticks({ data_dir }: HostBox, machine: string): number[] {
  const file = join(data_dir, "logs", machine, "log");
  if (!existsSync(file)) return [];
  return [...readFileSync(file, "utf8").matchAll(/tick ([\d.]+)$/gm)].map(([, at]) => Number(at));
}

async function list(control: ControlBox): Promise<Shown[]> {
  return (await control.ask("GET", MACHINES)) as unknown as Shown[];
}

/** Asked until it is done: while the database is away nothing is. */
async function make(control: ControlBox, config: object): Promise<string> {
  return await until("a machine is made", async () => {
    const answer = await control.call("POST", MACHINES, { config });
    return answer?.status === 200 && String(answer.body["id"]);
  });
}

/** Several hosts with machines of their own are too much for every push. */
const heavy = runs(0, 1) === 0 ? "takes a minute: npm run prove -- system/hosts" : undefined;
const missing = heavy ?? realMachinesMissing() ?? postgresMissing();

suite("a host whose cable is pulled", { skip: missing }, () => {
  test("its machines stand still before others run them, standbys start, and nothing runs twice", async (t) => {
    const house = await aHouse(t, "--host-lease", String(LEASE_S));
    const controls = [await house.control(), await house.control()];
    const [one, two] = controls;
    assert.ok(one && two);
    const hosts = [await house.host(), await house.host(), await house.host()];
    await one.ask("POST", "/v1/apps", { app_name: "web" });
    const making = Array.from({ length: COUNT }, (_, index) => make(index % 2 ? one : two, MOVES));
    await house.restartDatabase();
    const ids = await Promise.all(making);
    const ran = async (wanted: readonly string[], not?: HostBox): Promise<boolean> => {
      const known = new Map((await list(two)).map((machine) => [machine.id, machine]));
      return wanted.every((id) => known.get(id)?.state === "started" && known.get(id)?.host !== not?.id);
    };
    await until("all run, on whatever was restarted under them", () => ran(ids));

    const stays = await make(one, CONFIG);
    await until("one that may not leave runs", () => ran([stays]));
    const home = (await list(one)).find(({ id }) => id === stays)?.host;
    const lost = hosts.find(({ id }) => id === home) ?? assert.fail();
    const standby = await make(one, { ...CONFIG, standbys: [stays] });
    await until("all tick there", async () => {
      const there = (await list(one)).filter(({ host, state }) => host === lost.id && state === "started");
      return there.every(({ id }) => ticks(lost, id).length > 2);
    });
    const there = (await list(one)).filter(({ host }) => host === lost.id).map(({ id }) => id);

    lost.box.cut();
    const cut = performance.now();
    await until("others run what may leave", () => ran(ids, lost), 120_000);
    const others = hosts.filter((host) => host !== lost);
    const where = new Map((await list(one)).map(({ id, host }) => [id, host]));
    if (where.get(standby) !== lost.id) {
      await until("the standby runs", () => ran([standby]), 120_000);
      t.diagnostic(`standby up ${((performance.now() - cut) / 1000).toFixed(1)} s after the cut, lease ${LEASE_S} s`);
    }
    for (const id of there.filter((machine) => ids.includes(machine))) {
      const host = others.find((other) => other.id === where.get(id)) ?? assert.fail();
      await until("it ticks elsewhere", async () => ticks(host, id).length > 2);
      const last = ticks(lost, id).at(-1) ?? 0;
      const [begun = 0] = ticks(host, id);
      assert.ok(last < begun, `${id}: last tick behind the cut cable at ${last}, first elsewhere at ${begun}`);
    }
    const shown = (await list(two)).find(({ id }) => id === stays);
    assert.equal(shown?.host_status, "unreachable");
    const before = new Map(there.map((id) => [id, ticks(lost, id).length]));

    lost.box.mend();
    await until(
      "what stayed goes on where it was",
      async () => ticks(lost, stays).length > (before.get(stays) ?? 0) + 2,
    );
    for (const id of there.filter((machine) => ids.includes(machine)))
      assert.equal(ticks(lost, id).length, before.get(id), `${id} took no step more on the host it had left`);
    const left = join(lost.data_dir, "machines");
    await until("nothing of what moved is left there", async () =>
      there.filter((id) => ids.includes(id)).every((id) => !existsSync(join(left, id))),
    );
    assert.equal((await list(one)).length, ids.length + 2, "nothing is lost, and nothing is there that nobody made");
  });
});
