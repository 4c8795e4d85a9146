import assert from "node:assert/strict";
import { test } from "node:test";
import { aMachine } from "../fixtures.ts";
import type { Machine } from "../types.ts";
import { learnAddresses } from "./addresses.ts";
import type { MachineTransaction } from "./transaction.ts";

test("machines started by an older version get their IPv4 address, once", async () => {
  const running = (id: string, more: Partial<Machine> = {}): Machine => ({
    ...aMachine(),
    id,
    boot: "b1",
    state: "started",
    ...more,
  });
  const machines = new Map(
    [
      running("old"),
      running("new", { private_ipv4: "100.96.0.9" }),
      running("moved on"),
      running("stopped", { state: "stopped", boot: null }),
    ].map((machine) => [machine.id, machine]),
  );
  let queried: string[] = [];
  const parts = {
    host_ids: ["0001"],
    store: { alive: async () => [...machines.values()] },
    driver: {
      recover: async (refs: readonly { id: string; boot: string }[]) => {
        queried = refs.map(({ id }) => id);
        machines.set("moved on", running("moved on", { boot: "b2" }));
        return refs.map(({ id, boot }) => ({
          id,
          boot,
          state: "running" as const,
          private_ipv4: `100.96.0.${id.length}`,
        }));
      },
    },
    writer: {
      change: async (id: string, decide: (transaction: MachineTransaction) => boolean) => {
        const machine = machines.get(id) as Machine;
        const transaction = { machine, set: (fields: Partial<Machine>) => machines.set(id, { ...machine, ...fields }) };
        decide(transaction as unknown as MachineTransaction);
        return machine;
      },
    },
  };
  await learnAddresses(parts);
  assert.deepEqual(queried, ["old", "moved on"]);
  const known = [...machines.values()].map(({ private_ipv4 }) => private_ipv4);
  assert.deepEqual(known, ["100.96.0.3", "100.96.0.9", null, null]);
  machines.delete("moved on");
  queried = [];
  await learnAddresses(parts);
  assert.deepEqual(queried, []);
});
