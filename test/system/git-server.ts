/** A Git server on loopback as people run one: Debian's `git http-backend` behind HTTP, with a password if one is wanted. */
import { spawn, spawnSync } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { tempDir } from "../support.ts";

export interface GitServer {
  host: string;
  /** Of the one repository that it has. */
  url: string;
  dir: string;
  /** How many requests came. */
  requests(): number;
  close(): void;
}

export async function startGitServer({ password }: { password?: string } = {}): Promise<GitServer> {
  const root = tempDir();
  const dir = join(root, "shop.git");
  spawnSync("git", ["init", "-q", "--bare", "-b", "main", dir]);
  spawnSync("git", ["-C", dir, "config", "http.receivepack", "true"]);
  const right = password === undefined ? undefined : `Basic ${Buffer.from(`git:${password}`).toString("base64")}`;
  let requests = 0;
  const server: Server = createServer((request, response) => {
    requests++;
    if (right !== undefined && request.headers.authorization !== right) response.writeHead(401).end();
    else void backend(root, request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, url: `http://${host}/shop.git`, dir, requests: () => requests, close: () => server.close() };
}

/** The CGI program of Git. */
async function backend(root: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://git");
  const { headers } = request;
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(headers["git-protocol"] ?? ""),
      REMOTE_USER: "anyone",
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  request.pipe(child.stdin);
  child.stdin.on("error", () => {});
  const output = await buffer(child.stdout);
  const end = output.indexOf("\r\n\r\n");
  const fields = output
    .toString("latin1", 0, end)
    .split("\r\n")
    .map((line) => line.split(/: (.*)/s));
  const status = Number.parseInt(fields.find(([name]) => name === "Status")?.[1] ?? "200", 10);
  const rest = fields
    .filter(([name]) => name !== "Status")
    .map(([name = "", value = ""]): [string, string] => [name, value]);
  response.writeHead(status, Object.fromEntries(rest)).end(output.subarray(end + 4));
}
