import { ApiError, fail } from "#core/errors.ts";
import { QueryFailure } from "../engine/worker-link.ts";
import type { RemoteAddress } from "./address.ts";
import { ORG_LABEL, withoutOrg } from "./enforce.ts";
import { REMOTE_LIMITS } from "./limits.ts";

/** The organization that a query is for. */
export interface Tenant {
  org_id: string;
  tenant: number;
}

type Fields = readonly (readonly [name: string, value: string])[];

/**
 * Queries the remote engine. Only the paths and parameters named in this folder ever reach it; the organization is
 * enforced three times: by the URL, which a body cannot override, by the matcher in every selector, and by tenants
 * where there are any.
 */
export class RemoteClient {
  readonly #address: RemoteAddress;
  #trusted: Promise<void> | undefined;

  constructor(address: RemoteAddress) {
    this.#address = address;
  }

  /** Returns the text of a response, without the label of the organization. */
  async query(tenant: Tenant, path: string, fields: Fields, signal?: AbortSignal): Promise<string> {
    await this.#trust();
    return withoutOrg(await this.#send(tenant, path, fields, signal), tenant.org_id);
  }

  /** Returns the `data` of a JSON response. */
  async data<T>(tenant: Tenant, path: string, fields: Fields, signal?: AbortSignal): Promise<T> {
    return (JSON.parse(await this.query(tenant, path, fields, signal)) as { data: T }).data;
  }

  /** Deletes all series of the organization. */
  async remove({ org_id, tenant }: Tenant): Promise<void> {
    const match = this.#address.tenants ? '{__name__!=""}' : `{${ORG_LABEL}="${org_id}"}`;
    const url = `${this.#address.remove(tenant)}/api/v1/admin/tsdb/delete_series?match[]=${encodeURIComponent(match)}`;
    const answer = await reach(() => fetch(url, { method: "POST", signal: timeout(undefined) }));
    if (!answer.ok) fail("storage_failed", `the metrics engine did not delete the series: ${answer.status}`);
  }

  async #send({ org_id, tenant }: Tenant, path: string, fields: Fields, signal?: AbortSignal): Promise<string> {
    const url = new URL(`${this.#address.read(tenant)}${path}`);
    if (!this.#address.tenants) url.searchParams.set("extra_label", `${ORG_LABEL}=${org_id}`);
    // Label values, federation and the status take no form.
    const form = !/\/(values|federate|tsdb)$/.test(path);
    const body = new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value]));
    if (!form) for (const [name, value] of fields) url.searchParams.append(name, value);
    const answer = await reach(() =>
      fetch(url, { ...(form ? { method: "POST", body } : {}), signal: timeout(signal), redirect: "error" }),
    );
    const text = await reach(() => textWithin(answer, REMOTE_LIMITS.answer_bytes));
    if (!answer.ok) throw refusal(answer.status, text, org_id);
    return text;
  }

  /** Refuses to query an engine that ignores the label that enforces the organization. */
  async #trust(): Promise<void> {
    if (this.#address.tenants) return;
    this.#trusted ??= this.#probe().catch((thrown: unknown) => {
      this.#trusted = undefined;
      throw thrown;
    });
    await this.#trusted;
  }

  async #probe(): Promise<void> {
    const unknown = { org_id: "-none-", tenant: 0 };
    for (const path of ["/api/v1/labels", "/api/v1/label/__name__/values"]) {
      const { data } = JSON.parse(await this.#send(unknown, path, [])) as { data: unknown[] };
      // Some versions return `__name__` even without any series.
      if (data.some((found) => found !== "__name__")) {
        fail(
          "storage_failed",
          "the metrics engine ignores extra_label, so organizations would see each other; start it without " +
            "-search.ignoreExtraFiltersAtLabelsAPI",
        );
      }
    }
  }
}

const timeout = (signal: AbortSignal | undefined): AbortSignal =>
  AbortSignal.any([AbortSignal.timeout(REMOTE_LIMITS.read_ms), ...(signal ? [signal] : [])]);

/** Counts the bytes as they arrive: a large response is chunked, without a content length. */
export async function textWithin({ body }: Response, most_bytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > most_bytes) fail("query_failed", `the answer is larger than ${most_bytes} bytes (answer_bytes)`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

async function reach<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof ApiError || (thrown instanceof Error && thrown.name === "AbortError")) throw thrown;
    if (thrown instanceof Error && thrown.name === "TimeoutError") {
      throw new ApiError("query_timeout", `the metrics engine took longer than ${REMOTE_LIMITS.read_ms / 1000} s`);
    }
    throw new ApiError("storage_failed", "the metrics engine does not respond", { cause: thrown });
  }
}

/** The engine's reason why the query failed, without the engine's address or messages about itself. */
function refusal(status: number, text: string, org_id: string): Error {
  let message = text.slice(0, 500);
  try {
    message = (JSON.parse(text) as { error?: string }).error ?? message;
  } catch {
    // Not JSON: the text itself is the message.
  }
  const kind = status === 400 ? "bad_data" : status === 503 ? "timeout" : "execution";
  return new QueryFailure({ name: "QueryError", message: withoutOrg(message, org_id), details: { kind } });
}
