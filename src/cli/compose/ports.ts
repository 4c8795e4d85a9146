/** Published ports as services of a machine. */
import { isTable } from "../app-file/shape.ts";
import { UsageError } from "../verb.ts";
import { type Project, plain, type Table } from "./read.ts";

/** Ports of databases, queues and the like: compose publishes them for the developer's own tools. */
const PRIVATE: Readonly<Record<number, string>> = {
  22: "SSH",
  1433: "SQL Server",
  1521: "Oracle",
  2181: "ZooKeeper",
  2379: "etcd",
  3306: "MySQL",
  4222: "NATS",
  5432: "PostgreSQL",
  5672: "AMQP",
  6379: "Redis",
  9042: "Cassandra",
  9092: "Kafka",
  11211: "memcached",
  27017: "MongoDB",
};

const MOST_PORTS = 100;
const TLS_PORT = 443;

interface Published {
  host_ip: string;
  published: number | undefined;
  target: number;
  protocol: string;
}

/** `[[services]]` of a compose service; what stays private is noted. */
export function servicesFor(project: Project, name: string, service: Table): Table[] {
  const ports = [service["ports"] ?? []]
    .flat()
    .flatMap((one) => publishedOf(one, `${project.path}: services.${name}.ports`));
  const open = ports.filter(({ host_ip, published, target, protocol }) => {
    const why = privateReason(host_ip, published, target, protocol);
    if (why === undefined) return true;
    project.notes.push(
      `${name}: port ${target} is not published: ${why}; \`hangar proxy ${published ?? target}:${target}\` reaches it`,
    );
    return false;
  });
  const by_target = Map.groupBy(open, ({ target, protocol }) => `${target}/${protocol}`);
  return [...by_target.values()].map((same) => ({
    internal_port: same[0]?.target,
    protocol: same[0]?.protocol,
    processes: [name],
    ports: same.map(({ published, protocol, target }) => ({
      port: published,
      ...(protocol === "udp" ? {} : { handlers: handlersOf(published ?? 0, target) }),
    })),
  }));
}

function privateReason(
  host_ip: string,
  published: number | undefined,
  target: number,
  protocol: string,
): string | undefined {
  if (/^(127\.|::1$|\[::1\]$|localhost$)/.test(host_ip)) return `it is for ${host_ip} only`;
  if (published === undefined) return "the file names no port for it outside";
  const known = protocol === "tcp" ? PRIVATE[target] : undefined;
  return known === undefined ? undefined : `it is a port of ${known}, which is for the app's own machines`;
}

/** A server that terminates TLS itself gets the raw connection. */
const handlersOf = (published: number, target: number): string[] =>
  target === TLS_PORT ? [] : published === TLS_PORT ? ["tls", "http"] : ["http"];

function publishedOf(given: unknown, where: string): Published[] {
  if (!isTable(given)) return shortForm(plain(given), where);
  const { target, published, protocol = "tcp", host_ip = "" } = given;
  const outside = published === undefined ? "" : `${plain(published)}:`;
  return shortForm(`${outside}${plain(target)}/${plain(protocol)}`, where).map((one) => ({
    ...one,
    host_ip: plain(host_ip),
  }));
}

/** `80`, `8080:80`, `127.0.0.1:8080-8081:80-81/udp`. */
function shortForm(text: string, where: string): Published[] {
  const match = /^(?:(?:(\[[\da-fA-F:]+\]|[\d.]+|localhost):)?(\d*(?:-\d+)?):)?(\d+(?:-\d+)?)(?:\/(tcp|udp))?$/.exec(
    text,
  );
  if (!match) throw new UsageError(`${where}: ${text} is no port such as 80, 8080:80 or 127.0.0.1:8080:80`);
  const [, host_ip = "", outside = "", inside = "", protocol = "tcp"] = match;
  const targets = range(inside, where);
  const published = outside === "" ? targets.map(() => undefined) : range(outside, where);
  if (published.length !== targets.length)
    throw new UsageError(`${where}: ${text} names ${published.length} ports outside and ${targets.length} inside`);
  return targets.map((target, at) => ({ host_ip, published: published[at], target, protocol }));
}

function range(text: string, where: string): number[] {
  const [first = 0, last = first] = text.split("-").map(Number);
  if (first < 1 || last > 65_535 || last < first || last - first >= MOST_PORTS)
    throw new UsageError(`${where}: ${text} is no port, nor a range of at most ${MOST_PORTS} ports`);
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
