/** Builds on another host of the platform, for a process that cannot build, or does not for this organization. */
import type { BuildSite } from "#builds/site.ts";
import type { Build, ContextOwner, NewBuild } from "#builds/types.ts";
import { fail } from "#core/errors.ts";
import { type CallHandlers, type CallReply, type Channel, refused, type StreamHandlers } from "#hosts/channel.ts";

interface MissingRequest {
  owner: ContextOwner;
  digests: readonly string[];
}

interface CreateRequest {
  app: Parameters<BuildSite["create"]>[0];
  created_by: string;
  /** Includes its secrets: the channel is encrypted, and they are not forwarded. */
  wanted: NewBuild;
  id: string;
}

interface FilesRequest {
  owner: ContextOwner;
}

type Session = Awaited<ReturnType<Channel["stream"]>>;
type Received = Awaited<ReturnType<BuildSite["receive"]>>;

/** The code of an orderly close. */
const DONE = 1000;
/** Ends the files of an upload. */
const END = "end";
/** Less than a message of the channel may have. */
const PIECE_BYTES = 256 * 1024;

export const remoteBuilds = (channel: Channel, address: string): BuildSite => ({
  async missing(owner, digests) {
    return (await channel.call(address, "buildMissing", { owner, digests } satisfies MissingRequest)) as string[];
  },

  async create(app, created_by, wanted, id) {
    const request = { app, created_by, wanted, id } satisfies CreateRequest;
    return (await channel.call(address, "buildCreate", request)) as Build;
  },

  async receive(owner, upload) {
    const body = { owner } satisfies FilesRequest;
    const session = await channel.stream(address, "buildFiles", body, new AbortController().signal);
    // A refusal comes in the middle of the upload.
    let answered = false;
    const answering = session.messages().next();
    const stop = (): void => {
      answered = true;
    };
    answering.then(stop, stop);
    try {
      for await (const piece of upload) {
        for (let at = 0; at < piece.length; at += PIECE_BYTES) await session.send(piece.subarray(at, at + PIECE_BYTES));
        if (answered) break;
      }
      await session.send(END);
      const { value: answer } = await answering;
      if (typeof answer !== "string")
        fail("host_unreachable", `the connection to the host at ${address} broke off`, { retry_after_s: 2 });
      const reply = JSON.parse(answer) as CallReply;
      return reply.error === undefined ? (reply.result as Received) : refused(reply);
    } finally {
      session.end(DONE, "that is all");
    }
  },
});

/** Serves builds requested by other processes. The service is available slightly later. */
export const buildHandlers = (site: () => BuildSite): { calls: CallHandlers; streams: StreamHandlers } => ({
  calls: {
    buildMissing: async (body) => {
      const { owner, digests } = body as MissingRequest;
      return await site().missing(owner, digests);
    },
    buildCreate: async (body) => {
      const { app, created_by, wanted, id } = body as CreateRequest;
      return await site().create(app, created_by, wanted, id);
    },
  },
  streams: {
    buildFiles: async (body) => async (session) => {
      const result = await site().receive((body as FilesRequest).owner, piecesOf(session));
      await session.send(JSON.stringify({ result } satisfies CallReply));
      session.end(DONE, "that is all");
    },
  },
});

async function* piecesOf(session: Session): AsyncGenerator<Uint8Array> {
  for await (const message of session.messages()) {
    if (typeof message === "string") return;
    yield message;
  }
  fail("build_refused", "the upload broke off");
}
