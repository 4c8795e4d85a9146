import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { connect, type Socket } from "node:net";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { route } from "./route.ts";
import { createServer } from "./server.ts";

suite("client disconnect", () => {
  test("a client that disconnects before the handler checks is detected", async (t) => {
    const begun = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<boolean>();
    const slow = route("GET /slow", {
      summary: "Checks for a disconnect only after a while",
      part: "platform",
      access: "open",
      response: { status: 204 },
      async handle(call) {
        begun.resolve();
        await left.promise;
        aborted.resolve(call.signal.aborted);
      },
    });
    // An open row that is not a POST uses neither the guard nor idempotency.
    const unused = { guard: {} as never, idempotency: {} as never };
    const server = createServer({ rows: [slow], ...unused, clock: systemClock, log: silentLog });
    t.after(() => server.close());
    const { port } = await server.listen("127.0.0.1", 0);
    const closed = Promise.withResolvers<void>();
    const accepted = (message: unknown): void =>
      void (message as { socket: Socket }).socket.once("close", () => setImmediate(closed.resolve));
    subscribe("net.server.socket", accepted);
    t.after(() => unsubscribe("net.server.socket", accepted));
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    await begun.promise;
    socket.destroy();
    await closed.promise;
    left.resolve();
    assert.equal(await aborted.promise, true);
  });
});
