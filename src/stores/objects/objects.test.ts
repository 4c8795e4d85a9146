import { after } from "node:test";
import { systemClock } from "#core/clock.ts";
import { objectStoreSuite } from "#core/objects.suite.ts";
import { scoped } from "#core/objects.ts";
import { type S3Server, s3Missing, startS3 } from "../../../test/s3.ts";
import { tempDir } from "../../../test/support.ts";
import { LocalObjects } from "./local.ts";
import { S3Objects } from "./s3.ts";

objectStoreSuite("a folder", { open: async () => new LocalObjects(tempDir()) });

objectStoreSuite("a part of a folder", {
  open: async () => {
    const whole = new LocalObjects(tempDir());
    await whole.put("other/a/1", Buffer.from("somebody else's"));
    return scoped(whole, "own/part/");
  },
});

let server: Promise<S3Server> | undefined;
let stores = 0;
after(async () => await (await server)?.stop());

objectStoreSuite("s3rver", {
  skip: s3Missing(),
  // This server ignores the condition; that it is found out is what is tested with it.
  unconditional: /does not honour If-None-Match/,
  async open() {
    server ??= startS3(tempDir());
    return new S3Objects({ ...(await server), prefix: `store-${++stores}/` }, systemClock);
  },
});
