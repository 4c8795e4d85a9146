/**
 * Reads a repository elsewhere over Git's protocol, version 2. The platform makes the requests, so that they go where it
 * lets them; what comes is given to a Git without a network.
 */
import { PushRefused } from "./hook.ts";
import type { GitLimits } from "./limits.ts";

export interface RemoteRepository {
  /** Without a slash at its end. */
  url: string;
  username: string;
  password: string | undefined;
}

export interface RemoteRequest {
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: Uint8Array;
  redirect: "manual";
  signal: AbortSignal;
}

interface RemoteResponse {
  status: number;
  headers: { get(name: string): string | null };
  body: AsyncIterable<Uint8Array> | null;
}

/** Sends a request to where the operator allows it. */
export type SendRemote = (url: URL, request: RemoteRequest) => Promise<RemoteResponse>;

/** A packet of Git's protocol: bytes, or one of its marks. */
type Packet = Buffer | "flush" | "delimiter" | "end";
const MARKS: Record<string, Packet> = { "0000": "flush", "0001": "delimiter", "0002": "end" };
const HEAD_BYTES = 4;
const ID = /^[0-9a-f]{40}$/;

const packet = (text: string): Buffer => {
  const bytes = Buffer.from(`${text}\n`);
  return Buffer.concat([Buffer.from((bytes.length + HEAD_BYTES).toString(16).padStart(HEAD_BYTES, "0")), bytes]);
};
const refused = (what: string): never => {
  throw new PushRefused(what);
};

/** The first packet of these bytes and its length; undefined while it is not whole. */
function firstPacket(bytes: Buffer): { packet: Packet; length: number } | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const head = bytes.toString("latin1", 0, HEAD_BYTES);
  const mark = MARKS[head];
  if (mark) return { packet: mark, length: HEAD_BYTES };
  const length = /^[0-9a-f]{4}$/.test(head) ? Number.parseInt(head, 16) : 0;
  if (length < HEAD_BYTES) refused("the repository does not answer in Git's protocol");
  return bytes.length < length ? undefined : { packet: bytes.subarray(HEAD_BYTES, length), length };
}

async function* packets(source: AsyncIterable<Uint8Array>): AsyncGenerator<Packet> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of source) {
    rest = Buffer.concat([rest, piece]);
    for (let first = firstPacket(rest); first; first = firstPacket(rest)) {
      yield first.packet;
      rest = rest.subarray(first.length);
    }
  }
  if (rest.length > 0) refused("the answer of the repository ended in the middle");
}

const textOf = (one: Packet): string => (typeof one === "string" ? "" : one.toString().replace(/\n$/, ""));

export class RemoteReader {
  readonly #send: SendRemote;
  readonly #limits: Pick<GitLimits, "remote_answer_bytes">;

  constructor(send: SendRemote, limits: Pick<GitLimits, "remote_answer_bytes">) {
    this.#send = send;
    this.#limits = limits;
  }

  /** The commit of a branch there, or undefined. */
  async head(remote: RemoteRepository, branch: string, signal: AbortSignal): Promise<string | undefined> {
    await this.#greet(remote, signal);
    const ref = `refs/heads/${branch}`;
    const answer = await this.#ask(remote, ["command=ls-refs"], [`ref-prefix ${ref}`], signal);
    for await (const one of packets(this.#bounded(answer))) {
      const [id = "", name] = textOf(one).split(" ");
      if (name === ref) return ID.test(id) ? id : refused("the repository has object ids of another kind than SHA-1");
    }
    return undefined;
  }

  /** The pack with the commit and what it needs, without what is here already. */
  async *pack(
    remote: RemoteRepository,
    { want, have }: { want: string; have: readonly string[] },
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const wish = ["thin-pack", "ofs-delta", "no-progress", `want ${want}`, ...have.map((id) => `have ${id}`), "done"];
    const answer = await this.#ask(remote, ["command=fetch"], wish, signal);
    let in_pack = false;
    for await (const one of packets(answer)) {
      if (typeof one === "string") continue;
      if (!in_pack) in_pack = textOf(one) === "packfile";
      // Each piece begins with a byte that says what it is.
      else if (one[0] === 1) yield one.subarray(1);
      else if (one[0] === 3) refused(`the repository says: ${one.toString("utf8", 1).trim().slice(0, 200)}`);
    }
    if (!in_pack) refused("the repository sent no pack");
  }

  /** Refuses what does not speak version 2. */
  async #greet(remote: RemoteRepository, signal: AbortSignal): Promise<void> {
    const answer = await this.#request(remote, "/info/refs?service=git-upload-pack", { signal });
    for await (const one of packets(this.#bounded(answer))) if (textOf(one) === "version 2") return;
    refused("the repository does not speak version 2 of Git's protocol, which Git has had since 2018");
  }

  async #ask(
    remote: RemoteRepository,
    command: readonly string[],
    lines: readonly string[],
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const marks = [Buffer.from("0001"), Buffer.from("0000")] as const;
    const body = Buffer.concat([...command.map(packet), marks[0], ...lines.map(packet), marks[1]]);
    return await this.#request(remote, "/git-upload-pack", { body, signal });
  }

  async #request(
    { url, username, password }: RemoteRepository,
    path: string,
    { body, signal }: { body?: Buffer; signal: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>> {
    const basic = Buffer.from(`${username || "git"}:${password ?? ""}`).toString("base64");
    const type = { "content-type": "application/x-git-upload-pack-request" };
    const response = await this.#send(new URL(url + path), {
      method: body ? "POST" : "GET",
      headers: {
        // Some servers answer other programs with pages for people.
        "user-agent": "git/2.39 (hangar)",
        "git-protocol": "version=2",
        accept: "*/*",
        ...(password === undefined ? {} : { authorization: `Basic ${basic}` }),
        ...(body ? type : {}),
      },
      ...(body ? { body } : {}),
      redirect: "manual",
      signal,
    });
    const { status } = response;
    if (status === 401 || status === 403)
      refused(`the repository refuses the credentials (${status}): hangar git connect with others`);
    if (status >= 300 && status < 400)
      refused(`the repository has moved: hangar git connect ${placeOf(response.headers.get("location"), path)}`);
    if (status !== 200) refused(`the repository answers ${status}${status === 404 ? ": is it private?" : ""}`);
    return response.body ?? refused("the repository answers nothing");
  }

  async *#bounded(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of source) {
      bytes += piece.length;
      if (bytes > this.#limits.remote_answer_bytes)
        refused("the list of branches is too long (limit remote_answer_bytes)");
      yield piece;
    }
  }
}

const placeOf = (location: string | null, path: string): string => {
  const [own = ""] = path.split("?");
  return (location ?? "").split("?")[0]?.replace(own, "").slice(0, 200) || "with its new address";
};
