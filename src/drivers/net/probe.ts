/** A check of a machine: a connection, or a request, from this host to its private address. */
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { messageOf } from "#core/assert.ts";
import type { CheckConfig } from "#machines/config-schema.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";

export interface Probed {
  passing: boolean;
  output: string;
}

/** Never fails: what went wrong is the output. It ends with `signal`, and by no clock of its own. */
export async function probe(host: string, check: CheckConfig, signal: AbortSignal): Promise<Probed> {
  try {
    signal.throwIfAborted();
    return check.type === "http" ? await ask(host, check, signal) : await reach(host, check.port ?? 0, signal);
  } catch (thrown) {
    return { passing: false, output: messageOf(thrown) };
  }
}

async function reach(host: string, port: number, signal: AbortSignal): Promise<Probed> {
  const socket = connect({ host, port, family: 6, signal });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve).once("error", reject);
    });
    return { passing: true, output: `port ${port} takes connections` };
  } finally {
    socket.destroy();
  }
}

/** As a load balancer would ask: anything from 200 to 299 is well. */
async function ask(host: string, check: CheckConfig, signal: AbortSignal): Promise<Probed> {
  const headers = headersOf(check, host);
  const options: RequestOptions = {
    host,
    family: 6,
    port: check.port,
    method: check.method ?? "GET",
    path: check.path ?? "/",
    headers,
    agent: false,
    signal,
  };
  const tls = {
    servername: check.tls_server_name ?? "",
    rejectUnauthorized: !check.tls_skip_verify,
  };
  const https = check.protocol === "https";
  return await new Promise((resolve, reject) => {
    const asked = https ? httpsRequest({ ...options, ...tls }) : httpRequest(options);
    asked.once("error", reject).once("response", (response) => {
      const { statusCode = 0 } = response;
      let text = "";
      const done = (): void => {
        const passing = statusCode >= 200 && statusCode < 300;
        resolve({ passing, output: `${statusCode} ${response.statusMessage ?? ""}\n${text}`.trim() });
        asked.destroy();
      };
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (text.length >= MACHINE_LIMITS.check_output_chars) done();
      });
      response.once("end", done).once("error", done);
    });
    asked.end();
  });
}

function headersOf({ headers, port }: CheckConfig, host: string): Record<string, string | string[]> {
  const own = (headers ?? []).map(({ name, values }) => [name.toLowerCase(), one(values)] as const);
  return { host: `[${host}]:${port}`, "user-agent": "Hangar-Check", ...Object.fromEntries(own) };
}

/** Some headers, such as Host, may not be lists. */
const one = (values: string[]): string | string[] => (values.length === 1 ? (values[0] ?? "") : values);
