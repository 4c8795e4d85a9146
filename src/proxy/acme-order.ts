import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { AcmeMessage, AcmeOrder, Presented } from "./acme-process.ts";
import { withoutOwn } from "./dns-hook.ts";
import { PROXY_LIMITS } from "./limits.ts";

const PROGRAM = fileURLToPath(new URL("./acme-process.ts", import.meta.url));

interface OrderParts {
  clock: Clock;
  /** Aborts the order. */
  signal: AbortSignal;
  /** Called when an account was created. */
  onAccount(url: string): Promise<void>;
  /** Publishes a challenge response where the authority looks for it. */
  present(token: string, answer: string): Promise<void>;
}

/** Orders one certificate; chain and key are PEM. Fails with the error of the authority or of the connection to it. */
export async function orderCertificate(
  order: Omit<AcmeOrder, "timeout_ms">,
  { clock, signal, onAccount, present }: OrderParts,
): Promise<{ chain: string; key: string }> {
  const { acme_request_ms: timeout_ms, acme_order_ms } = PROXY_LIMITS;
  // Does not inherit this process's options: those of a test run would write to its report.
  const child = fork(PROGRAM, {
    env: withoutOwn(process.env),
    execArgv: [],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const { promise, resolve, reject } = Promise.withResolvers<{ chain: string; key: string }>();
  const stop = (problem: string) => () => reject(new Error(problem));
  const presented = async (token: string, answer: string): Promise<Presented> => {
    try {
      await present(token, answer);
      return {};
    } catch (thrown) {
      return { problem: messageOf(thrown) };
    }
  };
  // The account key is passed neither as an argument nor in the environment.
  const send = (message: AcmeOrder | Presented): void => void child.send(message, (error) => error && reject(error));
  send({ ...order, timeout_ms });
  child.on("message", (message: AcmeMessage) => {
    if (message.type === "issued") resolve(message);
    else if (message.type === "failed") stop(message.problem)();
    else if (message.type === "account") onAccount(message.url).catch(reject);
    else void presented(message.token, message.answer).then(send);
  });
  child.once("error", reject);
  child.once("exit", stop("the order ended without an answer"));
  const over = new AbortController();
  clock.sleep(acme_order_ms, over.signal).then(stop("the authority did not come to an end in time"), () => {});
  const aborted = stop("the platform stops");
  if (signal.aborted) aborted();
  signal.addEventListener("abort", aborted, { once: true, signal: over.signal });
  try {
    return await promise;
  } finally {
    over.abort();
    child.kill("SIGKILL");
  }
}
