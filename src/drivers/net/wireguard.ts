/**
 * WireGuard carrier: encrypted and authenticated packets in UDP. A process's key is derived from the platform's key
 * and the process's name, so every process can compute the public keys of the others and nothing is stored. The device
 * drops packets whose source address does not belong to the sending process.
 */
import { createHmac, createPrivateKey, createPublicKey } from "node:crypto";
import { isIPv6 } from "node:net";
import { program } from "../linux/program.ts";
import type { Carrier, CarrierParts } from "./carrier.ts";

const PORT = 51_820;
/** DER prefix of a raw X25519 private key (PKCS #8). */
const BEFORE_KEY = Buffer.from("302e020100300506032b656e04220420", "hex");

export function wireguard({ device, node_id, mtu, key }: CarrierParts): Carrier {
  const secretOf = (node: string): Buffer => createHmac("sha256", key).update(`wireguard ${node}`).digest();
  return {
    neighbours: false,
    async stands() {
      const shown = await program("wg", ["show", device, "public-key"]).catch(() => "");
      return shown.trim() === publicKey(secretOf(node_id));
    },
    async make() {
      // Without kernel support, a userspace implementation works, more slowly.
      await program("ip", ["link", "add", device, "type", "wireguard"]).catch(async (thrown: unknown) => {
        await program("wireguard-go", [device], { outlives: true }).catch(() => {
          throw new Error(`this box has no WireGuard (${String(thrown)}); install wireguard-go, or use vxlan`);
        });
      });
      await program("ip", ["link", "set", device, "mtu", String(mtu), "addrgenmode", "none"]);
    },
    async keep(ends) {
      const own = ["[Interface]", `PrivateKey = ${secretOf(node_id).toString("base64")}`, `ListenPort = ${PORT}`];
      const others = ends.flatMap((end) => [
        "[Peer]",
        `PublicKey = ${publicKey(secretOf(end.node_id))}`,
        `Endpoint = ${isIPv6(end.underlay) ? `[${end.underlay}]` : end.underlay}:${PORT}`,
        `AllowedIPs = ${[`${end.address}/128`, ...end.nets, ...(end.net4 ? [end.net4] : [])].join(", ")}`,
      ]);
      // Unchanged peers keep their sessions.
      await program("wg", ["syncconf", device, "/dev/stdin"], { input: `${[...own, ...others].join("\n")}\n` });
    },
    knocks: () => [],
  };
}

function publicKey(secret: Uint8Array): string {
  const pair = createPrivateKey({ key: Buffer.concat([BEFORE_KEY, secret]), format: "der", type: "pkcs8" });
  return Buffer.from(createPublicKey(pair).export({ format: "jwk" }).x ?? "", "base64url").toString("base64");
}
