import assert from "node:assert/strict";
import { test } from "node:test";
import { openControl } from "./control.ts";
import type { Emulator } from "./emulator.ts";

test("the emulator's control server has a usable URL, on IPv6 too", async () => {
  const emulator = { token: "t" } as Emulator; // Requests without the token are refused.
  for (const host of ["127.0.0.1", "::1"]) {
    const control = await openControl(emulator, { host, port: 0 });
    try {
      const { status } = await fetch(`${control.url}/clock`);
      assert.equal(status, 401);
    } finally {
      control.close();
    }
  }
});
