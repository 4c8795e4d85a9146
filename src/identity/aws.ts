/** The token file of machines that take on an AWS role (`AWS_ROLE_ARN`), written anew before it runs out. */
import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AuthStore } from "#auth/store.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { Timers } from "#core/timers.ts";
import { wantsAwsRole } from "#machines/runtime/identity-env.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Issuer } from "./tokens.ts";

/** The audience that AWS expects. */
const AWS_AUDIENCE = "sts.amazonaws.com";

interface Parts {
  machines: Pick<MachineStore, "find">;
  orgs: Pick<AuthStore, "findOrgById">;
  secrets(app_id: string): Promise<Record<string, string>>;
  issuer: Issuer;
  clock: Clock;
  log: Log;
  lifetime_s: number;
}

export class AwsTokens {
  readonly #parts: Parts;
  readonly #timers: Timers;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  close(): void {
    this.#timers.close();
  }

  /** Writes the token file if the machine wants one, and keeps it fresh. */
  async install(machine_id: string, folder: string): Promise<void> {
    const { machines, orgs, secrets, issuer, lifetime_s, log } = this.#parts;
    const machine = await machines.find(machine_id);
    const org = machine && (await orgs.findOrgById(machine.org_id));
    if (!machine || !org) return;
    if (!wantsAwsRole({ ...(await secrets(machine.app_id)), ...machine.config.env })) {
      return rmSync(join(folder, "oidc_token"), { force: true });
    }
    let again_ms = (lifetime_s * 1000) / 2;
    try {
      writeReadable(join(folder, "oidc_token"), await issuer.issue(machine, org, { aud: AWS_AUDIENCE }));
    } catch (error) {
      again_ms = 1000;
      log.warn({ error, machine: machine_id }, "a machine's token file could not be written; trying again");
    }
    this.#timers.set(machine_id, again_ms, () => {
      void this.install(machine_id, folder).catch((error: unknown) => {
        log.error({ error, machine: machine_id }, "a machine's token file is no longer kept fresh");
      });
    });
  }

  remove(machine_id: string): void {
    this.#timers.cancel(machine_id);
  }
}

/** Readable by every user inside; replaced atomically. */
function writeReadable(file: string, token: string): void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, token);
  chmodSync(fresh, 0o444);
  renameSync(fresh, file);
}
