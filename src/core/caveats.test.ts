/** What each caveat refuses, with which message, and how it is decoded. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  ACTIONS,
  type AccessRequest,
  ALL_ACTIONS,
  actionWords,
  type Caveat,
  caveatWords,
  fromWire,
  refusal,
  toWire,
} from "./caveats.ts";
import { LIMITS } from "./limits.ts";

const READ = ACTIONS.read;
const at = (iso: string): number => Date.parse(iso) / 1000;
const validity: Caveat = {
  type: "validity",
  not_before_s: at("2026-01-01T00:00:00Z"),
  not_after_s: at("2026-01-02T00:00:00Z"),
};
const now_ms = Date.parse("2026-01-01T12:00:00Z");
const accessRequest = (more: Partial<AccessRequest>): AccessRequest => ({ action: "read", now_ms, ...more });

suite("caveats", () => {
  test("each caveat refuses requests outside its scope and names the reason", () => {
    const cases: [Caveat, Partial<AccessRequest>, string | undefined][] = [
      [{ type: "org", org: "acme", actions: READ }, { org: "acme" }, undefined],
      [{ type: "org", org: "acme", actions: READ }, {}, "caveat org: the token is for organization acme only"],
      [
        { type: "org", org: "acme", actions: READ },
        { org: "other" },
        "caveat org: the token is for organization acme only",
      ],
      [
        { type: "org", org: "acme", actions: READ },
        { org: "acme", action: "write" },
        "caveat org: the token allows read, this needs write",
      ],
      [{ type: "actions", actions: ACTIONS.delete }, { action: "delete" }, undefined],
      [{ type: "actions", actions: 0 }, {}, "caveat actions: the token allows nothing, this needs read"],
      [{ type: "apps", apps: { web: READ } }, { app: "web" }, undefined],
      [
        { type: "apps", apps: { web: READ } },
        { app: "web", action: "control" },
        "caveat apps: the token allows read, this needs control",
      ],
      [
        { type: "apps", apps: { web: READ, api: READ } },
        { app: "db" },
        "caveat apps: the token is for app web, api only",
      ],
      [{ type: "apps", apps: { web: READ } }, { app: "toString" }, "caveat apps: the token is for app web only"],
      [
        { type: "apps", apps: { web: READ } },
        { machine: "m" },
        "caveat apps: the token is for app web only, and this is not about one app",
      ],
      [{ type: "machines", machines: { m: READ } }, { machine: "m" }, undefined],
      [
        { type: "machines", machines: { m: READ } },
        { machine: "n" },
        "caveat machines: the token is for machine m only",
      ],
      [{ type: "from_machine", machine: "m" }, { from_machine: "m" }, undefined],
      [{ type: "from_machine", machine: "m" }, {}, "caveat from_machine: the token works only from inside machine m"],
      [validity, {}, undefined],
      [validity, { now_ms: validity.not_before_s * 1000 }, undefined],
      [
        validity,
        { now_ms: validity.not_before_s * 1000 - 1 },
        "caveat validity: the token is valid from 2026-01-01T00:00:00Z",
      ],
      [validity, { now_ms: validity.not_after_s * 1000 - 1 }, undefined],
      [validity, { now_ms: validity.not_after_s * 1000 }, "caveat validity: the token expired 2026-01-02T00:00:00Z"],
      [
        { type: "validity", not_before_s: Number.MAX_SAFE_INTEGER, not_after_s: Number.MAX_SAFE_INTEGER },
        {},
        "caveat validity: the token is valid from +275760-09-13T00:00:00Z",
      ],
      [{ type: "any", of: [[validity], [{ type: "actions", actions: 0 }]] }, {}, undefined],
      [
        { type: "any", of: [[validity, { type: "actions", actions: 0 }]] },
        {},
        "caveat any: none of its 1 alternative holds (caveat actions: the token allows nothing, this needs read)",
      ],
      [{ type: "unknown", wire: [9] }, {}, "a caveat of a kind this platform does not know"],
    ];
    for (const [caveat, request, message] of cases)
      assert.equal(refusal([caveat], accessRequest(request)), message, JSON.stringify(caveat));
    assert.equal(refusal([], accessRequest({})), undefined);
    assert.match(
      refusal([validity, { type: "actions", actions: 0 }], accessRequest({})) ?? "",
      /actions/,
      "every one must hold",
    );
  });

  test("each caveat has a description", () => {
    assert.deepEqual([0, READ, ACTIONS.read | ACTIONS.control, 7, ALL_ACTIONS].map(actionWords), [
      "nothing",
      "read",
      "read and control",
      "read, write and create",
      "everything",
    ]);
    const all: [Caveat, string][] = [
      [{ type: "org", org: "acme", actions: READ }, "only organization acme: read"],
      [{ type: "actions", actions: ALL_ACTIONS }, "only everything"],
      [{ type: "apps", apps: { web: READ, api: 2 } }, "only app web (read), api (write)"],
      [{ type: "machines", machines: { m: 0 } }, "only machine m (nothing)"],
      [validity, "valid from 2026-01-01T00:00:00Z until 2026-01-02T00:00:00Z"],
      [{ ...validity, not_before_s: 0 }, "valid until 2026-01-02T00:00:00Z"],
      [{ type: "from_machine", machine: "m" }, "only from inside machine m"],
      [
        { type: "any", of: [[{ type: "actions", actions: 1 }, validity], [{ type: "actions", actions: 2 }]] },
        `at least one of: [only read and ${caveatWords(validity)}] or [only write]`,
      ],
      [{ type: "unknown", wire: [9] }, "a caveat of a kind this version does not know: it refuses everything"],
    ];
    for (const [caveat, words] of all) assert.equal(caveatWords(caveat), words);
  });

  test("each caveat type has a fixed wire number, sorted names, and decodes to what was encoded", () => {
    const all: [Caveat, unknown[]][] = [
      [{ type: "org", org: "acme", actions: 1 }, [1, "acme", 1]],
      [{ type: "actions", actions: 31 }, [2, 31]],
      [
        { type: "apps", apps: { web: 1, api: 2 } },
        [
          3,
          [
            ["api", 2],
            ["web", 1],
          ],
        ],
      ],
      [{ type: "machines", machines: { m: 0 } }, [4, [["m", 0]]]],
      [{ type: "validity", not_before_s: 0, not_after_s: 5 }, [5, 0, 5]],
      [{ type: "from_machine", machine: "m" }, [6, "m"]],
      [{ type: "any", of: [[{ type: "actions", actions: 1 }]] }, [7, [[[2, 1]]]]],
    ];
    for (const [caveat, wire] of all) {
      assert.deepEqual(toWire(caveat), wire);
      assert.deepEqual(JSON.parse(JSON.stringify(fromWire(wire, 0))), JSON.parse(JSON.stringify(caveat)));
    }
  });

  test("a caveat that does not match a known form decodes as unknown, keeps its bytes, and refuses", () => {
    const long = "x".repeat(256);
    const wrong: unknown[] = [
      null,
      "org",
      [],
      [1],
      [1, "acme"],
      [1, "", 1],
      [1, long, 1],
      [1, "acme", 32],
      [1, "acme", -1],
      [1, "acme", 1.5],
      [1, "acme", "1"],
      [1, "acme", 1, 1],
      [2],
      [2, 1, 1],
      [2, 32],
      [3, []],
      [3, {}],
      [3, [["web"]]],
      [3, [["web", 1, 1]]],
      [
        3,
        [
          ["web", 1],
          ["web", 1],
        ],
      ],
      [3, [["", 1]]],
      [3, [["web", 32]]],
      [3, ["web"]],
      [4, [[1, 1]]],
      [5, 0],
      [5, -1, 1],
      [5, 0, -1],
      [5, 0, 1.5],
      [5, 0, Number.MAX_SAFE_INTEGER + 1],
      [6, ""],
      [6, 7],
      [7, []],
      [7, [[]]],
      [7, {}],
      [7, [1]],
      [8, "later"],
      ["2", 1],
      [[2], 1],
      [{ toString: 1 }, 1],
    ];
    for (const wire of wrong) {
      const caveat = fromWire(wire, 0);
      assert.equal(caveat.type, "unknown", JSON.stringify(wire));
      assert.deepEqual(toWire(caveat), Array.isArray(wire) ? wire : [wire]);
    }
    assert.equal(fromWire([1, "x".repeat(255), 31], 0).type, "org");
    assert.equal(fromWire([7, [[[2, 1]]]], LIMITS.token_nesting - 1).type, "any");
    assert.equal(fromWire([7, [[[2, 1]]]], LIMITS.token_nesting).type, "unknown");
    const inner = fromWire([7, [[[7, [[[2, 1]]]]]]], LIMITS.token_nesting - 1);
    assert.ok(inner.type === "any" && inner.of[0]?.[0]?.type === "unknown", "each level counts");
  });
});
