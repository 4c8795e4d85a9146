import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { suite, test } from "node:test";
import { LocalBus } from "#core/bus.ts";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { aMachine } from "#machines/fixtures.ts";
import type { MachineUpdate } from "#machines/lifecycle/writer.ts";
import type { MachineStore } from "#machines/store.ts";
import { until } from "../../test/support.ts";
import { Directory } from "./directory.ts";
import { NetworkListeners } from "./network-listeners.ts";

suite("listeners of private networks", () => {
  test("an address that another process has is reported once, and used as soon as it is free", async (t) => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    t.after(() => other.close());
    const { port } = other.address() as AddressInfo;
    const own = createServer();
    t.after(() => own.close());
    let tries = 0;
    const listen = async (): Promise<void> => {
      tries++;
      own.listen(port, "127.0.0.1");
      await once(own, "listening");
    };
    const reports: object[] = [];
    const clock = virtualClock();
    const bus = new LocalBus<MachineUpdate>({ onError() {}, onFull: () => assert.fail() });
    const log = { ...silentLog, warn: (facts: object) => void reports.push(facts) };
    // No machine is read here.
    const directory = new Directory({ store: {} as MachineStore, bus });
    const services = [{ what: "the gateway", listen }];
    const listeners = new NetworkListeners({
      directory,
      host_ids: [],
      loadApp: async () => {},
      clock,
      log,
      listeners: services,
    });
    t.after(() => listeners.close());
    await listeners.holding(aMachine().private_ip, async () => {
      const again = async (): Promise<boolean> => {
        await clock.advance(500);
        return tries > 5;
      };
      await until("it is tried again and again", again);
      assert.equal(reports.filter((one) => "code" in one && one.code === "EADDRINUSE").length, 1);
      await new Promise((resolve) => other.close(resolve));
      await until("it listens", async () => {
        await clock.advance(500);
        return own.listening;
      });
    });
  });
});
