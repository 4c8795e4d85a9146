import type { Socket } from "node:net";
import { createSecureContext, createServer, type SecureContext, type Server, type TLSSocket } from "node:tls";
import type { Certificate, PortOptions } from "../../table.ts";

/** How TLS is spoken on one connection. */
export interface TlsRules {
  alpn: readonly string[];
  options: Pick<PortOptions, "min_version" | "max_version">;
  /** The self-signed certificate, whatever the name: the app that answers has none for it, and another's is not its own. */
  self_signed: boolean;
}

/** The certificates of a worker, by name, ready to be used. */
export class Keyring {
  readonly #fallback: Certificate;
  readonly #ticket_keys: Buffer;
  #byName = new Map<string, Certificate>();
  /** Made when first needed: reading a key takes a while. */
  #contexts = new WeakMap<Certificate, Map<string, SecureContext>>();

  readonly #servers = new Map<string, Server>();
  readonly #waiting = new Map<string, (secure: TLSSocket) => void>();

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
    const wildcard = dot > 0 ? this.#byName.get(`*${servername.slice(dot)}`) : undefined;
    const covering = wildcard?.reserved?.includes(servername) ? undefined : wildcard;
    return this.#byName.get(servername) ?? covering ?? this.#fallback;
  }

  context(servername: string, { options, self_signed }: TlsRules): SecureContext {
    const certificate = self_signed ? this.#fallback : this.find(servername);
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

  /**
   * Ends TLS on a connection; `done` is told the secure one when the handshake succeeded. The work is that of a
   * TLS server which never listens: it is given connections, one such server for each set of rules.
   */
  secure(socket: Socket, rules: TlsRules, done: (secure: TLSSocket) => void): void {
    const { min_version, max_version } = rules.options;
    const key = `${min_version} ${max_version} ${rules.self_signed} ${rules.alpn.join(" ")}`;
    const server = this.#servers.get(key) ?? this.#server(rules);
    this.#servers.set(key, server);
    const name = nameOf(socket);
    this.#waiting.set(name, done);
    socket.once("close", () => this.#waiting.delete(name));
    server.emit("connection", socket);
  }

  #server(rules: TlsRules): Server {
    const { alpn, options } = rules;
    const server = createServer({
      cert: this.#fallback.chain,
      key: this.#fallback.key,
      minVersion: options.min_version,
      maxVersion: options.max_version,
      ticketKeys: this.#ticket_keys,
      ...(alpn.length > 0 ? { ALPNProtocols: [...alpn] } : {}),
      SNICallback: (name, chosen) => chosen(null, this.context(name.toLowerCase(), rules)),
    });
    server.on("secureConnection", (secure) => {
      const name = nameOf(secure);
      this.#waiting.get(name)?.(secure);
      this.#waiting.delete(name);
    });
    server.on("tlsClientError", (_error, secure) => secure.destroy());
    return server;
  }
}

/** Tells apart the connections that are open at the same time. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
