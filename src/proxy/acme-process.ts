/**
 * One order with a certificate authority (ACME, RFC 8555). It runs in a process of its own: acme-client and the packages
 * below it take 40 MB, of which a thread would give back a fifth.
 */
import { once } from "node:events";
import { Agent } from "node:https";
import acme from "acme-client";
import { messageOf } from "#core/assert.ts";

export interface AcmeOrder {
  directory_url: string;
  /** PEM of the authority that vouches for the directory itself, when the system does not know it. */
  ca: string | undefined;
  account_key: string;
  /** Undefined: an account is made. */
  account_url: string | undefined;
  hostname: string;
  challenge: "http-01" | "dns-01";
  /** Longest time without an answer to one request. */
  timeout_ms: number;
}

export type AcmeMessage =
  | { type: "account"; url: string }
  /** The answer must be where the authority looks for it before the process is told `Presented`. */
  | { type: "present"; token: string; answer: string }
  | { type: "issued"; chain: string; key: string }
  | { type: "failed"; problem: string };

export interface Presented {
  /** Why it could not be. */
  problem?: string;
}

/** Certificates and lists of them are a few KB. */
const ANSWER_BYTES = 1024 * 1024;
/** How often the authority is asked whether it is done: after 0.5 s, then at growing intervals, two minutes in all. */
const POLLS = { backoffAttempts: 30, backoffMin: 500, backoffMax: 5000 };

function configureHttp({ ca, timeout_ms }: AcmeOrder): void {
  const { axios } = acme;
  const limits = { timeout: timeout_ms, maxContentLength: ANSWER_BYTES, maxRedirects: 0, proxy: false as const };
  Object.assign(axios.defaults, limits, ca === undefined ? {} : { httpsAgent: new Agent({ ca }) });
  axios.defaults.headers.common["User-Agent"] = "hangar";
  // The package repeats requests for over a minute and then loses the reason. Whoever ordered repeats the whole order.
  axios.interceptors.response.clear();
  axios.interceptors.response.use(null, (error: Error & { code?: string; response?: object }) => {
    if (error.response) return error.response;
    const late = error.code === "ECONNABORTED" || error.code === "ETIMEDOUT";
    throw new Error(late ? "the authority does not answer" : `the authority cannot be reached: ${reasonOf(error)}`);
  });
}

const reasonOf = (error: Error & { code?: string }): string => error.message || (error.code ?? "no reason");

const tell = (message: AcmeMessage): unknown => process.send?.(message);

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
    tell({ type: "account", url: client.getAccountUrl() });
  }
  const key = await acme.crypto.createPrivateEcdsaKey("P-256");
  // A common name has at most 64 characters; the alternative name is what counts.
  const subject = hostname.length <= 64 ? { commonName: hostname } : {};
  const [, csr] = await acme.crypto.createCsr({ ...subject, altNames: [hostname] }, key);
  const chain = await client.auto({
    csr,
    challengePriority: [challenge],
    // Only the authority's own look counts.
    skipChallengeVerification: true,
    async challengeCreateFn(_authorization, { type, token }, answer) {
      if (type !== challenge) throw new Error(`the authority does not offer ${challenge} for this name`);
      tell({ type: "present", token, answer });
      const { problem } = await received<Presented>();
      if (problem !== undefined) throw new Error(problem);
    },
    // Whoever presented the answer takes it back when the order ends, however it does.
    challengeRemoveFn: async () => {},
  });
  return { type: "issued", chain, key: key.toString() };
}

const failed = (thrown: unknown): AcmeMessage => ({
  type: "failed",
  problem: messageOf(thrown) || "the authority gave no reason",
});

// Nobody waits for the certificate any more.
process.once("disconnect", () => process.exit(0));
tell(await issue(await received<AcmeOrder>()).catch(failed));
