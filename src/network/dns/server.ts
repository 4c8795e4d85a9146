import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { createServer, isIP, isIPv6, type Server, type Socket } from "node:net";
import type { Log } from "#core/log.ts";
import { gatewayAddress } from "#machines/names.ts";
import { machineAt, networkOf } from "../bytes.ts";
import type { Directory, Entry } from "../directory.ts";
import type { EgressEnforcer } from "../egress-enforcer.ts";
import { NETWORK_LIMITS } from "../limits.ts";
import { type Question, RCODES, type RecordData, readQuestion, writeAnswer } from "./message.ts";
import { findName, ZONE } from "./names.ts";
import { addressesIn } from "./records.ts";
import { queryOverTcp, serveMessages } from "./tcp.ts";

interface DnsParts {
  directory: Directory;
  /** The hosts whose machines use this server. */
  host_ids: readonly string[];
  /** Loads all machines of an app, including stopped ones. */
  loadApp(app_name: string): Promise<void>;
  log: Log;
  /** Upstream servers for public names; by default the host's own. */
  upstreams?: readonly Upstream[] | undefined;
  /** Which public names a machine may query, and who receives the responses. */
  egress?: Pick<EgressEnforcer, "mayAsk" | "answered"> | undefined;
}

interface QuerySource {
  /** An address of a machine in the network that is listened on. */
  network: string;
  from: string;
  tcp: boolean;
}

interface Upstream {
  host: string;
  port: number;
}

/** Maximum size of a message over TCP. */
const TCP_BYTES = 65_535;
const { dns_forward_ms, dns_forwarded, dns_idle_ms, dns_connections } = NETWORK_LIMITS;

/**
 * DNS server for machines. It listens on an address of each private network and answers with what that network may see;
 * public names are forwarded.
 */
export class DnsServer {
  readonly what = "the name server";
  readonly #parts: DnsParts;
  readonly #listeners = new Map<string, { udp: UdpSocket; tcp: Server }>();
  readonly #connections = new Set<Socket>();
  readonly #upstreams: readonly Upstream[];
  #forwarded = 0;

  constructor(parts: DnsParts) {
    this.#parts = parts;
    this.#upstreams = parts.upstreams ?? hostServers();
  }

  /** Listens on an address of a network; `network` is an address of a machine in it. Returns the port. */
  async listen(address: string, network: string, port = 53): Promise<number> {
    const udp = createSocket(isIPv6(address) ? "udp6" : "udp4");
    // Only the network's own machines are served, also without a firewall.
    const isOutsider = (asker: string | undefined): boolean => networkOf(asker ?? "::") !== networkOf(address);
    const tcp = createServer({ allowHalfOpen: true }, (socket) => {
      if (isOutsider(socket.remoteAddress)) return socket.destroy();
      this.#connections.add(socket);
      socket.once("close", () => this.#connections.delete(socket));
      const from = socket.remoteAddress ?? "";
      const answer = (message: Buffer) => this.#answer(message, { network, from, tcp: true });
      return void serveMessages(socket, { idle_ms: dns_idle_ms, answer });
    });
    tcp.maxConnections = dns_connections;
    udp.on("message", (message, from) => {
      if (isOutsider(from.address)) return;
      void this.#answer(message, { network, from: from.address, tcp: false }).then((answer) => {
        // It may have been closed meanwhile.
        if (answer && this.#listeners.get(address)?.udp === udp) udp.send(answer, from.port, from.address);
      });
    });
    try {
      await new Promise<void>((resolve, reject) => {
        udp.once("error", reject);
        udp.bind(port, address, resolve);
      });
      await new Promise<void>((resolve, reject) => {
        tcp.once("error", reject);
        tcp.listen(udp.address().port, address, resolve);
      });
    } catch (thrown) {
      udp.close();
      throw thrown;
    }
    udp.on("error", (error) => this.#parts.log.warn({ error, address }, "the name server had a problem"));
    this.#listeners.set(address, { udp, tcp });
    return udp.address().port;
  }

  close(): void {
    for (const { udp, tcp } of this.#listeners.values()) {
      udp.close();
      tcp.close();
    }
    this.#listeners.clear();
    for (const socket of this.#connections) socket.destroy();
  }

  async #answer(message: Buffer, { network, from, tcp }: QuerySource): Promise<Buffer | undefined> {
    const question = readQuestion(message);
    if (!question) return undefined;
    try {
      if (question.name === ZONE || question.name.endsWith(`.${ZONE}`)) {
        return await this.#own(question, network, tcp ? TCP_BYTES : question.size);
      }
      return await this.#outside(message, question, { network, from, tcp });
    } catch (error) {
      this.#parts.log.warn({ error, name: question.name }, "a DNS lookup failed");
      return writeAnswer(question, RCODES.failure, []);
    }
  }

  async #own(question: Question, network: string, size: number): Promise<Buffer> {
    const { directory, loadApp, host_ids } = this.#parts;
    const near = (machine: Entry): boolean => networkOf(machine.private_ip) === networkOf(network);
    const found = await findName(question.name, {
      gateway: gatewayAddress(network),
      isHere: ({ host_id }) => host_ids.includes(host_id),
      running: [...directory.all()].filter((machine) => machine.state === "started" && near(machine)),
      all: async (app_name) => {
        await loadApp(app_name);
        return [...directory.all()].filter((machine) => machine.app_name === app_name && near(machine));
      },
    });
    if (!found) return writeAnswer(question, RCODES.no_name, [], size);
    const wants = (type: string): boolean => question.type === type || question.type === "ANY";
    if ("text" in found) {
      const records = wants("TXT") ? [{ type: "TXT" as const, text: found.text }] : [];
      return writeAnswer(question, RCODES.ok, records, size);
    }
    const of = (type: "A" | "AAAA", addresses: readonly string[]): RecordData[] =>
      wants(type) ? addresses.map((address) => ({ type, address })) : [];
    const records = [...of("AAAA", found.ipv6), ...of("A", found.ipv4)];
    return writeAnswer(question, RCODES.ok, records, size);
  }

  /** Forwards a public name if the machine's policy allows it; its addresses are opened before the response is sent. */
  async #outside(message: Buffer, question: Question, { from, tcp }: QuerySource): Promise<Buffer> {
    const { egress, directory } = this.#parts;
    if (!egress) return await this.#forward(message, question, tcp);
    const machine = directory.find(machineAt(from));
    if (!machine || !(await egress.mayAsk(machine, question.name))) return writeAnswer(question, RCODES.refused, []);
    const answer = await this.#forward(message, question, tcp);
    await egress.answered(machine, question.name, addressesIn(answer, question.name));
    return answer;
  }

  /** Forwards to the host's servers, one after the other. */
  async #forward(message: Buffer, question: Question, tcp: boolean): Promise<Buffer> {
    if (this.#forwarded >= dns_forwarded) return writeAnswer(question, RCODES.failure, []);
    this.#forwarded++;
    // A client that uses TCP expects a response too long for a datagram.
    const forward = tcp ? queryOverTcp : queryOverUdp;
    try {
      for (const server of this.#upstreams) {
        const answer = await forward(server, message, dns_forward_ms);
        // Only a response to this very query counts.
        if (answer && answers(answer, message)) return answer;
      }
      return writeAnswer(question, RCODES.failure, []);
    } finally {
      this.#forwarded--;
    }
  }
}

const answers = (answer: Buffer, question: Buffer): boolean =>
  answer.length >= 2 && answer.readUInt16BE(0) === question.readUInt16BE(0);

async function queryOverUdp(
  { host, port }: Upstream,
  message: Buffer,
  timeout_ms: number,
): Promise<Buffer | undefined> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
  const timer = setTimeout(() => resolve(undefined), timeout_ms);
  socket.on("error", () => resolve(undefined));
  socket.on("message", (answer) => {
    if (answers(answer, message)) resolve(answer);
  });
  socket.connect(port, host, () => socket.send(message));
  const answer = await promise;
  clearTimeout(timer);
  socket.close();
  return answer;
}

/** The host's name servers. */
function hostServers(): Upstream[] {
  try {
    const lines = readFileSync("/etc/resolv.conf", "utf8").split("\n");
    return lines.flatMap((line) => {
      const server = /^\s*nameserver\s+(\S+)/.exec(line)?.[1];
      return server && isIP(server) ? [{ host: server, port: 53 }] : [];
    });
  } catch {
    return [];
  }
}
