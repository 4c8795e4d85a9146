import assert from "node:assert/strict";
import { test } from "node:test";
import { healthCheck } from "./healthcheck.ts";

const TIMES = { interval: "5s", timeout: "2s", grace_period: "1s" };

test("a HEALTHCHECK becomes a TCP or HTTP check when its command probes a port of the machine", () => {
  const cases: [string, object | undefined][] = [
    ["FROM x\n", undefined],
    ["FROM x\nHEALTHCHECK NONE\n", undefined],
    ["HEALTHCHECK CMD /app/check.sh\n", undefined],
    [
      "HEALTHCHECK --interval=30s --timeout=3s --start-period=1m --retries=3 \\\n  CMD curl -f http://localhost:3000/up?x=1 || exit 1\n",
      { interval: "30s", timeout: "3s", grace_period: "1m", type: "http", port: 3000, path: "/up?x=1" },
    ],
    [
      'HEALTHCHECK CMD false\nhealthcheck CMD ["wget", "--spider", "http://127.0.0.1:8080/"]\n',
      { ...TIMES, type: "http", port: 8080, path: "/", method: "HEAD" },
    ],
    ["HEALTHCHECK CMD nc -z localhost 9000\n", { ...TIMES, type: "tcp", port: 9000 }],
    ["HEALTHCHECK CMD pg_isready -U web\n", { ...TIMES, type: "tcp", port: 5432 }],
  ];
  for (const [dockerfile, check] of cases) assert.deepEqual(healthCheck(dockerfile), check, dockerfile);
});
