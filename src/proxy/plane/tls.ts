import { createSecureContext, type SecureContext } from "node:tls";
import type { Certificate, PortOptions } from "../table.ts";

/** The certificates of a worker, by name, ready to be used. */
export class Keyring {
  readonly #fallback: Certificate;
  readonly #ticket_keys: Buffer;
  #byName = new Map<string, Certificate>();
  /** Made when first needed: reading a key takes a while. */
  #contexts = new WeakMap<Certificate, Map<string, SecureContext>>();

  constructor(fallback: Certificate, ticket_keys: Uint8Array) {
    this.#fallback = fallback;
    this.#ticket_keys = Buffer.from(ticket_keys);
  }

  set(certificates: readonly Certificate[]): void {
    this.#byName = new Map(certificates.flatMap((one) => one.hostnames.map((name) => [name, one] as const)));
    this.#contexts = new WeakMap();
  }

  /** The certificate for a name: its own, that of `*.` its parent, or the self-signed one. */
  find(servername: string): Certificate {
    const dot = servername.indexOf(".");
    return (
      this.#byName.get(servername) ??
      (dot > 0 ? this.#byName.get(`*${servername.slice(dot)}`) : undefined) ??
      this.#fallback
    );
  }

  context(
    servername: string,
    options: Pick<PortOptions, "min_version" | "max_version" | "self_signed">,
  ): SecureContext {
    const certificate = options.self_signed ? this.#fallback : this.find(servername);
    const versions = `${options.min_version}-${options.max_version}`;
    const known = this.#contexts.get(certificate) ?? new Map<string, SecureContext>();
    this.#contexts.set(certificate, known);
    const context =
      known.get(versions) ??
      createSecureContext({
        cert: certificate.chain,
        key: certificate.key,
        minVersion: options.min_version,
        maxVersion: options.max_version,
        ticketKeys: this.#ticket_keys,
      });
    known.set(versions, context);
    return context;
  }
}
