import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { weaker } from "./confinement.ts";

const BASE = 78_970_880;
const CAPS = "00000000000405fb";

function status(change: { map?: string; uid?: number; gid?: number; caps?: string; nnp?: number; seccomp?: number }) {
  const { map = `0 ${BASE} 65536`, uid = 0, gid = 0, caps = CAPS, nnp = 1, seccomp = 2 } = change;
  const ids = (id: number): string => Array.from({ length: 4 }, () => BASE + id).join(" ");
  return [
    map,
    `Uid: ${ids(uid)}`,
    `Gid: ${ids(gid)}`,
    "CapInh: 0000000000000000",
    `CapPrm: ${caps}`,
    `CapEff: ${caps}`,
    `CapBnd: ${CAPS}`,
    "CapAmb: 0000000000000000",
    `NoNewPrivs: ${nnp}`,
    `Seccomp: ${seccomp}`,
  ].join("; ");
}

suite("confinement of a machine after a resume", () => {
  const user = { uid: 1000, gid: 1000, caps: "0000000000000000" };

  test("equal or stricter confinement is accepted", () => {
    for (const [was, is] of [
      [{}, {}],
      [user, user],
      // It was looked at just before it became its user.
      [{}, user],
      [{ gid: 1000 }, user],
      [{}, { caps: "0000000000000400" }],
      [{ nnp: 0 }, {}],
    ] as const) {
      assert.equal(weaker({ 1: status(was) }, { 1: status(is) }), undefined);
    }
    assert.equal(weaker({ 1: status({}), 9: status({}) }, { 1: status({}) }), undefined, "a child has ended");
  });

  test("weaker confinement is reported with the process", () => {
    for (const [was, is] of [
      [user, {}],
      [user, { ...user, uid: 0 }],
      [user, { ...user, uid: 1001 }],
      [user, { ...user, caps: "0000000000000001" }],
      [{}, { caps: "00000000000405ff" }],
      [{}, { nnp: 0 }],
      [{}, { seccomp: 0 }],
      [{}, { map: "0 0 4294967295" }],
    ] as const) {
      assert.match(weaker({ 7: status(was) }, { 7: status(is) }) ?? "", /^process 7 was/);
    }
    assert.match(weaker({ 1: status({}) }, {}) ?? "", /process 1 does not exist/);
    assert.match(weaker({ 1: status({}) }, { 1: "" }) ?? "", /^process 1 was/);
  });
});
