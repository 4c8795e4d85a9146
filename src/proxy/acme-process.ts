/**
 * One order with a certificate authority (ACME, RFC 8555). It runs in a process of its own: acme-client and the
 * packages below it take 40 MB, of which a thread would give back a fifth.
 */
import { once } from "node:events";
import { Agent } from "node:https";
import acme from "acme-client";
import { messageOf } from "#core/assert.ts";

export interface AcmeOrder {
  directory_url: string;
  /** PEM of the CA of the directory URL, when the system does not trust it. */
  ca: string | undefined;
  account_key: string;
  /** Undefined: an account is created. */
  account_url: string | undefined;
  hostname: string;
  challenge: "http-01" | "dns-01";
  /** Timeout of one request. */
  timeout_ms: number;
}

export type AcmeMessage =
  | { type: "account"; url: string }
  /** The response must be published before the process receives `Presented`. */
  | { type: "present"; token: string; answer: string }
  | { type: "issued"; chain: string; key: string }
  | { type: "failed"; problem: string };

export interface Presented {
  /** Why it could not be published. */
  problem?: string;
}

/** Certificates and lists of them are a few KB. */
const ANSWER_BYTES = 1024 * 1024;
/** Polls the authority after 0.5 s, then at growing intervals, for two minutes in all. */
const POLLS = { backoffAttempts: 30, backoffMin: 500, backoffMax: 5000 };

function configureHttp({ ca, timeout_ms }: AcmeOrder): void {
  const { axios } = acme;
  const limits = { timeout: timeout_ms, maxContentLength: ANSWER_BYTES, maxRedirects: 0, proxy: false as const };
  Object.assign(axios.defaults, limits, ca === undefined ? {} : { httpsAgent: new Agent({ ca }) });
  axios.defaults.headers.common["User-Agent"] = "hangar";
  // acme-client retries requests for over a minute and then loses the reason. The caller retries the whole order.
  axios.interceptors.response.clear();
  axios.interceptors.response.use(null, (error: Error & { code?: string; response?: object }) => {
    if (error.response) return error.response;
    const late = error.code === "ECONNABORTED" || error.code === "ETIMEDOUT";
    throw new Error(late ? "the authority does not answer" : `the authority cannot be reached: ${reasonOf(error)}`);
  });
}

const reasonOf = (error: Error & { code?: string }): string => error.message || (error.code ?? "no reason");

const send = (message: AcmeMessage): unknown => process.send?.(message);

async function received<T>(): Promise<T> {
  const [message] = (await once(process, "message")) as [T];
  return message;
}

async function issue(order: AcmeOrder): Promise<AcmeMessage> {
  const { directory_url, account_key, account_url, hostname, challenge } = order;
  configureHttp(order);
  const known = account_url === undefined ? {} : { accountUrl: account_url };
  const client = new acme.Client({ directoryUrl: directory_url, accountKey: account_key, ...known, ...POLLS });
  if (account_url === undefined) {
    await client.createAccount({ termsOfServiceAgreed: true });
    send({ type: "account", url: client.getAccountUrl() });
  }
  const key = await acme.crypto.createPrivateEcdsaKey("P-256");
  // A common name has at most 64 characters; clients use the alternative name.
  const subject = hostname.length <= 64 ? { commonName: hostname } : {};
  const [, csr] = await acme.crypto.createCsr({ ...subject, altNames: [hostname] }, key);
  const chain = await client.auto({
    csr,
    challengePriority: [challenge],
    // Only the authority's own validation counts.
    skipChallengeVerification: true,
    async challengeCreateFn(_authorization, { type, token }, answer) {
      if (type !== challenge) throw new Error(`the authority does not offer ${challenge} for this name`);
      send({ type: "present", token, answer });
      const { problem } = await received<Presented>();
      if (problem !== undefined) throw new Error(problem);
    },
    // The parent process removes the response when the order ends.
    challengeRemoveFn: async () => {},
  });
  return { type: "issued", chain, key: key.toString() };
}

const failed = (thrown: unknown): AcmeMessage => ({
  type: "failed",
  problem: messageOf(thrown) || "the authority gave no reason",
});

// The parent process has exited, so the certificate is no longer needed.
process.once("disconnect", () => process.exit(0));
send(await issue(await received<AcmeOrder>()).catch(failed));
