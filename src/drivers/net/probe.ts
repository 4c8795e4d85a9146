/** Runs one health check: a TCP or HTTP probe from this host to the machine's private address of either family. */
import { request as httpRequest, type RequestOptions } from "node:http";
import type { Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { messageOf } from "#core/assert.ts";
import { dialed, Endpoint } from "#core/dial.ts";
import type { CheckConfig } from "#machines/config/config-schema.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";

export interface Probed {
  passing: boolean;
  output: string;
}

export interface ProbeParts {
  private_ip: string;
  private_ipv4: string;
  /** Called when the connection fails: what the machine listens on instead. */
  unreachable(port: number): string | undefined;
}

/** Never fails: the error is the output. Ends with `signal`, without a timeout of its own. */
export async function probe(machine: ProbeParts, check: CheckConfig, signal: AbortSignal): Promise<Probed> {
  const { private_ip: host, private_ipv4: ipv4 } = machine;
  const port = check.port ?? 0;
  let socket: Socket;
  try {
    socket = await dialed(new Endpoint({ host, ipv4, port }), { signal });
  } catch (thrown) {
    const reason = signal.aborted ? undefined : machine.unreachable(port);
    return { passing: false, output: reason ? `${messageOf(thrown)}: ${reason}` : messageOf(thrown) };
  }
  try {
    if (check.type !== "http") return { passing: true, output: `port ${port} takes connections` };
    return await exchange(socket, host, check, signal);
  } catch (thrown) {
    return { passing: false, output: messageOf(thrown) };
  } finally {
    socket.destroy();
  }
}

/** Like a load balancer: any status from 200 to 299 passes. */
async function exchange(plain: Socket, host: string, check: CheckConfig, signal: AbortSignal): Promise<Probed> {
  const tls = { socket: plain, servername: check.tls_server_name ?? "", rejectUnauthorized: !check.tls_skip_verify };
  const socket = check.protocol === "https" ? tlsConnect(tls) : plain;
  const options: RequestOptions = {
    method: check.method ?? "GET",
    path: check.path ?? "/",
    headers: headersOf(check, host),
    createConnection: () => socket,
    signal,
  };
  return await new Promise((resolve, reject) => {
    const request = httpRequest(options);
    request.once("error", reject).once("response", (response) => {
      const { statusCode = 0 } = response;
      let text = "";
      const done = (): void => {
        const passing = statusCode >= 200 && statusCode < 300;
        resolve({ passing, output: `${statusCode} ${response.statusMessage ?? ""}\n${text}`.trim() });
        request.destroy();
      };
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (text.length >= MACHINE_LIMITS.check_output_chars) done();
      });
      response.once("end", done).once("error", done);
    });
    request.end();
  });
}

function headersOf({ headers, port }: CheckConfig, host: string): Record<string, string | string[]> {
  const own = (headers ?? []).map(({ name, values }) => [name.toLowerCase(), one(values)] as const);
  return { host: `[${host}]:${port}`, "user-agent": "Hangar-Check", ...Object.fromEntries(own) };
}

/** Some headers, such as Host, may not be lists. */
const one = (values: string[]): string | string[] => (values.length === 1 ? (values[0] ?? "") : values);
