/**
 * A machine moves to another host and its volume with it, by way of the object store. Either host is killed on the way,
 * again and again: what was written is there at the end, on one host, and nothing is left on the other.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { pathToFileURL } from "node:url";
import { postgresMissing } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { random, runs, seed } from "../support.ts";
import { aHouse, type ControlBox, type HostBox } from "./hosts-house.ts";
import { until } from "./hosts-support.ts";

const MACHINES = "/v1/apps/web/machines";
const SPIN = ["sh", "-c", "trap 'exit 0' INT TERM; while :; do sleep 1 & wait; done"];

async function run(control: ControlBox, id: string, script: string): Promise<string> {
  return await until(`in the machine: ${script}`, async () => {
    const answer = await control.call("POST", `${MACHINES}/${id}/exec`, { command: ["sh", "-c", script] });
    return answer?.status === 200 && answer.body["exit_code"] === 0 && `said ${String(answer.body["stdout"])}`;
  });
}

/** Images of volumes that a host has on its disk. */
const images = ({ box, data_dir }: HostBox): string =>
  box.run("sh", "-c", `find ${data_dir}/volumes -name 'vol_*' -type f -size +1M`).stdout;

/** Several hosts with machines of their own are too much for every push. */
const heavy = runs(0, 1) === 0 ? "takes a minute: npm run prove -- system/hosts" : undefined;
const missing = heavy ?? realMachinesMissing() ?? postgresMissing();

suite("moving a machine with a volume", { skip: missing }, () => {
  test("the volume's data are on exactly one host, whichever process is killed during the move", async (t) => {
    const rng = random(seed(t));
    const house = await aHouse(t, "--host-lease", "4");
    const objects = ["--objects-url", pathToFileURL(join(house.dir, "objects")).href];
    const control = await house.control(...objects);
    const hosts = [await house.host(...objects), await house.host(...objects)];
    await control.ask("POST", "/v1/apps", { app_name: "web" });
    const volume = await control.ask("POST", "/v1/apps/web/volumes", { name: "data", size_gb: 1, encrypted: false });
    const made = await control.ask("POST", MACHINES, {
      config: {
        image: "busybox",
        init: { exec: SPIN },
        guest: { cpus: 1, memory_mb: 256 },
        mounts: [{ volume: volume["id"], path: "/data" }],
      },
    });
    const id = String(made["id"]);
    await control.ask("GET", `${MACHINES}/${id}/wait?state=started&timeout=60`);
    const shown = async (): Promise<string> => String((await control.ask("GET", `${MACHINES}/${id}`))["host"]);
    for (let round = 0; round < runs(2, 10); round++) {
      await run(control, id, `echo round ${round} >> /data/log && sync`);
      const from = await shown();
      const [source, target] = hosts[0]?.id === from ? hosts : hosts.toReversed();
      assert.ok(source && target);
      await until("it is asked to move", async () => {
        const answer = await control.call("POST", `${MACHINES}/${id}/move`, { host_id: target.id });
        return answer?.status === 200;
      });
      const victim = rng() < 0.5 ? source : target;
      await new Promise((resolve) => setTimeout(resolve, rng() * 3000));
      await victim.child.kill();
      await victim.again();
      await until("it runs on the other host", async () => {
        const { host, state } = await control.ask("GET", `${MACHINES}/${id}`);
        return host === target.id && state === "started";
      });
      const lines = Array.from({ length: round + 1 }, (_, index) => `round ${index}\n`).join("");
      assert.equal(await run(control, id, "cat /data/log"), `said ${lines}`);
      await until("nothing is left on the host it came from", async () => images(source) === "");
      assert.notEqual(images(target), "", "it is on the host it went to");
      // A host without a zone of its own is one by itself.
      const { zone, state } = await control.ask("GET", `/v1/apps/web/volumes/${String(volume["id"])}`);
      assert.deepEqual([state, zone], ["created", target.id]);
    }
    await control.ask("DELETE", `${MACHINES}/${id}?force=true`);
    await control.ask("GET", `${MACHINES}/${id}/wait?state=destroyed&timeout=60`);
  });
});
