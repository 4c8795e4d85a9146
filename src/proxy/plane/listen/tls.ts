import type { Socket } from "node:net";
import { createSecureContext, createServer, type SecureContext, type Server, type TLSSocket } from "node:tls";
import type { Certificate, PortOptions } from "../../table.ts";

/** TLS settings of one connection. */
export interface TlsRules {
  alpn: readonly string[];
  options: Pick<PortOptions, "min_version" | "max_version">;
  /** Use the self-signed certificate for any name, because the app has none and must not show another app's. */
  self_signed: boolean;
}

/** The certificates of a worker, by name. */
export class Keyring {
  readonly #fallback: Certificate;
  readonly #ticket_keys: Buffer;
  #byName = new Map<string, Certificate>();
  /** Created on first use: parsing a key takes time. */
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

  /** The certificate of a name: exact, wildcard, or self-signed. */
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
   * Terminates TLS on a connection; `done` gets the TLS socket after the handshake. Uses one TLS server per set of
   * rules, which never listens and is given connections.
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

/** Identifies connections that are open at the same time. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
