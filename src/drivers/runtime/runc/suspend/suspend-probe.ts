/** The machine with which it is found out whether this host can suspend: it has of everything that may go wrong. */

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Launch } from "#machines/runtime/driver.ts";
import type { ImageSource } from "#machines/runtime/image-source.ts";
import { answers } from "../confinement.ts";
import { takeDown } from "../down.ts";
import { openParts, type RuncOptions } from "../parts.ts";
import { resume, type SuspendParts, suspend } from "./suspend.ts";

const BUSYBOX = "/usr/bin/busybox";
const ID = "0000000000000f";
const PORT = 7;
/** About a minute: the host may be busy. */
const TRIES = 500;
/** A machine that has just accepted a connection and no longer does has exited. */
const CONNECT_MS = 20_000;
const never = new AbortController().signal;

/** The installation used for the probe. */
export const suspendProbeOf = ({ data_dir, node_id }: Pick<RuncOptions, "data_dir" | "node_id">) => ({
  data_dir: join(data_dir, "trial"),
  node_id: createHash("sha256").update(`trial of ${node_id}`).digest("hex").slice(0, 16),
});

/** Rejects with the reason. Uses an installation of its own, which is removed afterwards. */
export async function probeSuspend(options: RuncOptions, found: Omit<SuspendParts, "containers">): Promise<void> {
  if (!existsSync(BUSYBOX)) throw new Error("there is no busybox to try it with (apt-get install busybox-static)");
  const { clock, log } = options;
  const { data_dir, node_id } = suspendProbeOf(options);
  rmSync(data_dir, { recursive: true, force: true });
  mkdirSync(data_dir, { recursive: true, mode: 0o700 });
  const parts = { images: image(data_dir), root_disk_bytes: 64 << 20, memory_key: randomBytes(32) };
  const { containers } = openParts({ data_dir, node_id, clock, log, ...parts });
  try {
    const launch = launchOf(node_id);
    const { handle } = await containers.start(launch, never);
    const ref = { id: ID, boot: launch.boot, handle };
    for (let tries = 0; !(await answers({ host: launch.private_ip, port: PORT }, 100)); tries++) {
      if (tries > TRIES) throw new Error("the machine it was tried with did not come up");
      await clock.sleep(20);
    }
    // A connection that stays open through the suspend.
    const socket = connect({ host: launch.private_ip, port: PORT, family: 6 });
    try {
      await once(socket, "connect", { signal: AbortSignal.timeout(CONNECT_MS) });
      socket.on("error", () => {});
      await suspend({ containers, ...found }, ref, never);
      const resumed = await resume({ containers, ...found }, launch, never);
      if ("lost" in resumed) throw new Error(`a machine that was suspended did not come back: ${resumed.lost}`);
    } finally {
      socket.destroy();
    }
  } finally {
    await containers.close();
    await takeDown({ data_dir, node_id, clock, log });
    rmSync(data_dir, { recursive: true, force: true });
  }
}

function image(dir: string): ImageSource {
  const layer = join(dir, "layer");
  for (const folder of ["bin", "etc", "tmp"]) mkdirSync(join(layer, folder), { recursive: true });
  copyFileSync(BUSYBOX, join(layer, "bin/busybox"));
  const ref = { registry: "", repository: "trial", digest: "" };
  const config = { entrypoint: [], cmd: [], env: {}, user: "", working_dir: "" };
  const held = { ref, layers: [layer], config, architecture: "", labels: {}, exposed_ports: [] };
  return {
    resolve: async () => ref,
    hold: async () => held,
    release: async () => {},
  };
}

function launchOf(node_id: string): Launch {
  const group = (at: number): string => Number.parseInt(node_id.slice(at, at + 4), 16).toString(16);
  const busybox = (...argv: string[]): { exec: string[] } => ({ exec: ["/bin/busybox", ...argv] });
  return {
    id: ID,
    boot: "trial",
    name: "trial",
    app_name: "trial",
    org_id: "trial",
    region: "local",
    instance_id: "trial",
    private_ip: `fdaa:${group(0)}:${group(4)}::2`,
    image_ref: { registry: "", repository: "trial", digest: "" },
    config: {
      image: "trial",
      processes: [
        busybox("httpd", "-f", "-p", String(PORT), "-h", "/tmp"),
        // In a loop, because CRIU interrupts sleeps: busybox 1.37's then returns, which would end the machine.
        { ...busybox("sh", "-c", "while :; do /bin/busybox sleep 1000; done"), user: "1000" },
      ],
    },
    secrets: {},
    egress: { mode: "none", allow: [] },
    keep_rootfs: false,
  };
}
