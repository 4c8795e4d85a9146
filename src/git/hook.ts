/**
 * The only hook that runs: Git calls it after it has checked the pushed objects and before it stores any. It reports the
 * refs to the platform and prints its output, which Git sends to the client as `remote:` lines.
 */
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import type { GitLimits } from "./limits.ts";
import type { RefUpdate } from "./types.ts";

/** Speaks over file descriptor 3: the updates, a line with a dot; then lines that begin with `=`, and `exit CODE`. */
export const HOOK = `#!/bin/sh
printf 'objects %s\\n' "\${GIT_QUARANTINE_PATH-}" >&3
cat >&3
printf '.\\n' >&3
while IFS= read -r line <&3; do
  case $line in
    "exit "*) exit "\${line#exit }" ;;
    *) printf '%s\\n' "\${line#=}" ;;
  esac
done
echo 'The platform was stopped during this push: nothing of it is kept. Push again.'
exit 1
`;

export interface Announced {
  /** The folder of the objects that are new, in the confined root; empty when there are none. */
  objects: string;
  updates: RefUpdate[];
}

/** What cannot be pushed, in words. */
export class PushRefused extends Error {
  override readonly name = "PushRefused";
}

const UPDATE = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) (refs\/\S+)$/;
const OBJECTS = /^objects ((?:\/app\/repo\.git\/(?:\.\/)?objects\/[\w-]+)?)$/;

/** One push as the hook sees it. */
export class HookChannel {
  readonly #socket: Duplex;
  #left: number;

  constructor(socket: Duplex, { push_output_bytes }: GitLimits) {
    this.#socket = socket;
    this.#left = push_output_bytes;
    // The hook has exited.
    socket.on("error", () => {});
  }

  /** Undefined when Git has ended without calling the hook. */
  async announced(limits: GitLimits): Promise<Announced | undefined> {
    const found: Announced = { objects: "", updates: [] };
    const problems: string[] = [];
    for await (const line of createInterface({ input: this.#socket })) {
      if (line === ".") {
        if (found.updates.length > limits.refs_per_push)
          problems.unshift(
            `A push changes at most ${limits.refs_per_push} branches and tags (limit refs_per_push); this one ${found.updates.length}.`,
          );
        if (problems.length > 0) throw new PushRefused(problems[0]);
        return found;
      }
      const [, before = "", after = "", ref] = UPDATE.exec(line) ?? [];
      const objects = OBJECTS.exec(line)?.[1];
      if (ref !== undefined) found.updates.push({ before, after, ref });
      else if (objects !== undefined) found.objects = objects;
      else problems.push("The name of a branch or tag cannot be used here: it has spaces or control characters.");
    }
    return undefined;
  }

  say(text: string): void {
    for (const line of text.split("\n")) {
      if (this.#left <= 0) return;
      this.#left -= line.length + 2;
      this.#write(this.#left > 0 ? `=${line}` : "=the rest of the output is left out (limit push_output_bytes)");
    }
  }

  end(code: 0 | 1): void {
    this.#write(`exit ${code}`);
  }

  #write(line: string): void {
    if (this.#socket.writable) this.#socket.write(`${line}\n`);
  }
}
