/** A Unix socket in a host's data dir, which only its owner can enter: the process answers for itself there. */
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { HOST_FILES, type HostStatus } from "#core/host-status.ts";
import type { Log } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import { VERSION } from "#core/version.ts";
import type { HostService } from "#hosts/service.ts";
import type { Readiness } from "#http/readiness.ts";
import type { DataDir } from "#stores/data-dir.ts";

interface StatusParts {
  dir: DataDir;
  log: Log;
  hosts: HostService;
  readiness: Pick<Readiness, "parts" | "problems">;
  facts: { base_url: string; driver: string };
}

/** Returns the function that closes it. Without it, as in a path too long for a socket, only `doctor` knows less. */
export async function serveHostStatus(settings: Settings, parts: StatusParts): Promise<() => void> {
  const { dir, log } = parts;
  if (settings.role !== "host") return () => {};
  const path = dir.file(HOST_FILES.socket);
  // Of a process that was killed.
  rmSync(path, { force: true });
  const server = createServer((socket) => {
    socket.on("error", () => {});
    statusOf(settings, parts).then(
      (status) => socket.end(`${JSON.stringify(status)}\n`),
      () => socket.destroy(),
    );
  });
  try {
    server.listen(path);
    await once(server, "listening");
  } catch (error) {
    log.warn({ error }, "the status of this host cannot be asked for (hangar doctor)");
  }
  return () => server.close();
}

async function statusOf({ host, objects }: Settings, parts: StatusParts): Promise<HostStatus> {
  const { hosts, readiness, facts } = parts;
  const missing = await readiness.problems();
  const [id = ""] = hosts.own;
  return {
    pid: process.pid,
    version: VERSION,
    driver: facts.driver,
    api: facts.base_url,
    address: hosts.seen(id)?.address ?? "",
    network: host.network,
    has_objects: objects.url !== undefined,
    ready: readiness.parts.filter((part) => missing.every((one) => one.part !== part)),
    missing,
  };
}
