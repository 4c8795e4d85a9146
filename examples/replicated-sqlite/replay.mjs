/**
 * Writes go to the primary, whichever machine a request reaches: a replica answers with the header `svc-replay`, and the
 * edge proxy sends the same request to the machine it names. `.primary`, which the node keeps beside the databases, says
 * which one that is; it is absent on the primary.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Requests that only read. */
const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** The primary's host:port, or undefined on the primary itself. */
export function primaryOf(dir) {
  try {
    return readFileSync(join(dir, ".primary"), "utf8").trim();
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The machine behind an address such as 148ed21a031189.vm.web.internal:20202. */
export function machineOf(hostname) {
  return /^([0-9a-f]{14})\.vm\./.exec(hostname)?.[1];
}

/** Answers writes on a replica with a replay, and hands everything else on. */
export function replayWrites(dir, handle) {
  return (request, response) => {
    const primary = READS.has(request.method) ? undefined : primaryOf(dir);
    if (primary === undefined) return handle(request, response);
    const machine = machineOf(primary);
    if (machine === undefined) {
      response.writeHead(503, { "retry-after": "1" }).end(`the primary is ${primary}, which is not a machine's name\n`);
      return;
    }
    response.writeHead(409, { "svc-replay": `instance=${machine}` }).end("writes go to the primary\n");
  };
}
