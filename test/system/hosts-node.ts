/**
 * A host as its own process, that keeps a journal of what it runs and until when it may: one line for every boot that
 * begins or ends, one for every moment up to which its fence lets things run, and one for every machine that it leaves
 * alone from then on or no longer. Times are of the clock that all
 * processes of one box share, so that the journals of several hosts can be laid side by side.
 *
 * HANGAR_TEST_JOURNAL is the file. With HANGAR_TEST_UNFENCED=1 the host begins things without asking its lease, and
 * claims to run for ever: what a checker must find. With HANGAR_TEST_EXEMPT=1 its fence leaves every machine alone, and
 * nobody else knows.
 */
import { appendFileSync, existsSync } from "node:fs";
import { readSettings } from "#core/settings.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { startPlatform } from "../../src/platform.ts";
import { readJournal } from "./hosts-history.ts";

const file = process.env["HANGAR_TEST_JOURNAL"] ?? "";
const unfenced = process.env["HANGAR_TEST_UNFENCED"] === "1";
const exempts_all = process.env["HANGAR_TEST_EXEMPT"] === "1";
const now = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;
const write = (line: object): void => appendFileSync(file, `${JSON.stringify({ at: now(), ...line })}\n`);

/** Written before it may run and after it has ended: the journal never claims less than there was. */
function journalled(driver: RuntimeDriver): RuntimeDriver {
  return new Proxy(driver, {
    get(target, name) {
      if (name === "start" || name === "resume") {
        return async (...args: Parameters<RuntimeDriver["start"]>) => {
          write({ what: "begin", id: args[0].id, boot: args[0].boot });
          if (name === "start") exempted.delete(args[0].id);
          if (exempts_all) write({ what: "exempt", id: args[0].id });
          return await (target[name] as RuntimeDriver["start"]).apply(target, args);
        };
      }
      if (name === "stop") {
        return async (...args: Parameters<RuntimeDriver["stop"]>) => {
          const exit = await target.stop(...args);
          write({ what: "end", id: args[0].id });
          return exit;
        };
      }
      if (name === "destroy") {
        return async (...args: Parameters<RuntimeDriver["destroy"]>) => {
          await target.destroy(...args);
          write({ what: "end", id: args[0] });
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as () => unknown).bind(target) : value;
    },
  });
}

const far = 3_600_000;
/** As a host's own are, they outlive a process: the journal is read for them. */
const exempted = new Set<string>();
if (existsSync(file)) for (const { what, id } of readJournal(file)) if (id) noteExempt(what, id);

function noteExempt(what: string, id: string): void {
  if (what === "exempt") exempted.add(id);
  if (what === "include" || what === "begin" || what === "end") exempted.delete(id);
}

const platform = await startPlatform(readSettings(process.argv.slice(2), process.env), {
  around: journalled,
  fence: {
    extend: (left_ms) => write({ what: "until", until: now() + (unfenced ? far : left_ms) }),
    shut: async () => (unfenced ? undefined : write({ what: "shut" })),
    open: async (gone) => {
      for (const id of gone) write({ what: "end", id });
      write({ what: "open" });
    },
    exempt: (id) => {
      exempted.add(id);
      write({ what: "exempt", id });
    },
    include: (id) => {
      exempted.delete(id);
      write({ what: "include", id });
    },
    exempted: () => [...exempted],
  },
});
process.on("SIGTERM", () => void platform.close().then(() => process.exit(0)));
process.stdout.write(`ready ${platform.host_ids.join(" ")}\n`);
