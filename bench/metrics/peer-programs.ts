/**
 * The programs of the peers, current ones first: built from a pinned version where there is a Go toolchain, otherwise as
 * Debian packages them, which may be years old. So every report names the version it compares with.
 */
import { spawnSync } from "node:child_process";
import { installed } from "../processes.ts";
import { build, type Source } from "../replication/go-program.ts";

export type PeerName = "victoria-metrics" | "prometheus";

/** Raised by hand, so that figures of two runs differ by what changed here. Prometheus 3.15.0 is module v0.315.0. */
const SOURCES: Record<PeerName, Source & { release: string }> = {
  "victoria-metrics": {
    module: "github.com/VictoriaMetrics/VictoriaMetrics",
    version: "v1.150.0",
    command: "app/victoria-metrics",
    release: "1.150.0",
  },
  prometheus: {
    module: "github.com/prometheus/prometheus",
    version: "v0.315.0",
    command: "cmd/prometheus",
    release: "3.15.0",
  },
};

export type PeerProgram = { program: string; version: string } | { reason: string };

export async function peerProgram(name: PeerName): Promise<PeerProgram> {
  const { release, ...source } = SOURCES[name];
  const built = await build(source);
  if ("program" in built) return { program: built.program, version: `${release}, built from its source` };
  if (installed(name)) return { program: name, version: `${packaged(name)}, Debian's; ${built.reason}` };
  return { reason: `${built.reason}; nor is it installed (apt-get install --no-install-recommends ${name})` };
}

function packaged(name: PeerName): string {
  const { stdout } = spawnSync("dpkg-query", ["--show", name], { encoding: "utf8" });
  return stdout?.trim().split("\t")[1] ?? "of an unknown version";
}
