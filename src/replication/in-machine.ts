/**
 * Configures a node in a machine of the platform, which needs no address, token or key: it gets its identity, its peers
 * and the lease from the machine's own socket. The nodes are the machines of one app.
 */
import { existsSync } from "node:fs";
import { decodeJwt } from "jose";
import type { Credentials } from "./credentials/credentials.ts";
import { MachineIdentity } from "./credentials/machine-identity.ts";
import { HttpLeases } from "./election/http-leases.ts";
import type { LeaseStore } from "./election/lease-store.ts";
import { MachineSocket } from "./machine-socket.ts";

export interface InMachine {
  credentials: Credentials;
  leases: LeaseStore;
  /** URL for the app's other machines. */
  url(port: number): string;
}

/** Claims of the machine's own token. */
export async function inMachine(socket_path: string): Promise<InMachine> {
  if (!existsSync(socket_path)) {
    throw new Error(
      `there is no ${socket_path}: --machine works inside machines; elsewhere say --primary, --join or --lease`,
    );
  }
  const socket = new MachineSocket(socket_path);
  const { iss: issuer = "", sub = "", machine_id } = decodeJwt(await socket.token("hangar-db"));
  const [org = "", app = ""] = sub.split(":");
  if (org === "" || app === "" || typeof machine_id !== "string") {
    throw new Error(`${socket_path} gave a token that names no machine of an app`);
  }
  return {
    credentials: new MachineIdentity({
      issuer,
      subject: `${org}:${app}:*`,
      mint: (audience) => socket.token(audience),
      keys: () => socket.keys(org),
    }),
    leases: new HttpLeases({ app, name: "default", send: (method, path, body) => socket.ask(method, path, body) }),
    url: (port) => `http://${machine_id}.vm.${app}.internal:${port}`,
  };
}
