/** The API every machine has at a socket of its own: its tokens, the keys of their issuer, and the leases of its app. */
import { request as httpRequest } from "#http/node-http.ts";

const REQUEST_MS = 5000;

export interface SocketResponse {
  status: number;
  text: string;
}

export class MachineSocket {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  async ask(method: string, path: string, body?: object): Promise<SocketResponse> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    return await new Promise<SocketResponse>((done, failed) => {
      const request = httpRequest({ socketPath: this.path, path, method, headers }, (response) => {
        let answer = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => {
          answer += part;
        });
        response.on("end", () => done({ status: response.statusCode ?? 0, text: answer.trim() }));
        response.on("error", failed);
      });
      request.on("error", failed);
      request.setTimeout(REQUEST_MS, () => request.destroy(new Error(`${this.path} is silent`)));
      request.end(text);
    });
  }

  /** A new token of this machine for an audience. */
  async token(audience: string): Promise<string> {
    const { status, text } = await this.ask("POST", "/v1/tokens/oidc", { aud: audience });
    if (status !== 200) throw new Error(`${this.path} gives no token: ${status} ${text}`);
    return text;
  }

  /** The public keys an organization's tokens are signed with, as JSON. */
  async keys(org: string): Promise<string> {
    const { status, text } = await this.ask("GET", `/oidc/${org}/.well-known/jwks.json`);
    if (status !== 200) throw new Error(`${this.path} gives no keys: ${status} ${text}`);
    return text;
  }
}
