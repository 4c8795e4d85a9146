/** Reads from the API of another platform, with a token of that platform. */
import { messageOf } from "#core/assert.ts";
import { sendOverHttp } from "../http-transport.ts";
import { UsageError } from "../verb.ts";

const REQUEST_MS = 60_000;
/** The official address of Fly's Machines API. */
export const FLY_URL = "https://api.machines.dev";

export class FlyApi {
  readonly #url: string;
  readonly #authorization: string;

  constructor(url: string, token: string) {
    if (!URL.canParse(url) || !/^https?:/.test(url))
      throw new UsageError(`${url} is not an address such as ${FLY_URL}`);
    this.#url = url.replace(/\/+$/, "");
    // A token that was copied with its scheme is used as it is.
    this.#authorization = token.includes(" ") ? token : token.startsWith("fm") ? `FlyV1 ${token}` : `Bearer ${token}`;
  }

  /** The JSON of a GET; undefined when there is no such thing. */
  async find(path: string): Promise<unknown> {
    const headers = { authorization: this.#authorization, accept: "application/json", "user-agent": "hangar" };
    const url = `${this.#url}${path}`;
    const answer = await sendOverHttp(
      { method: "GET", url, headers, body: undefined },
      AbortSignal.timeout(REQUEST_MS),
    ).catch((thrown: unknown) => {
      throw new UsageError(`no answer from ${url}: ${messageOf(thrown)}`, { cause: thrown });
    });
    if (answer?.status === 404) return undefined;
    if (answer?.status === 401 || answer?.status === 403)
      throw new UsageError(`${url}: the token in FLY_API_TOKEN may not read this (HTTP ${answer.status})`);
    if (!answer?.ok) throw new UsageError(`${url} answers with HTTP ${answer?.status ?? "redirect"}`);
    try {
      return JSON.parse(await answer.text()) as unknown;
    } catch (thrown) {
      throw new UsageError(`${url} does not answer with JSON: ${messageOf(thrown)}`, { cause: thrown });
    }
  }
}
