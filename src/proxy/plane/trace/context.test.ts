/** The cases of W3C's test suite for trace context (github.com/w3c/trace-context, test/test.py). */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { contextLines, readContext } from "./context.ts";

const TRACE = "12345678901234567890123456789012";
const PARENT = "1234567890123456";
const VALID = `00-${TRACE}-${PARENT}-01`;

const parent = (value: string) => readContext(`traceparent: ${value}\r\n`);
const state = (...values: string[]): string | undefined =>
  readContext(`traceparent: ${VALID}\r\n${values.map((value) => `tracestate: ${value}\r\n`).join("")}`)?.state;

suite("W3C trace context", () => {
  test("a valid traceparent continues the trace, with its sampled flag", () => {
    assert.deepEqual(parent(VALID), { trace_id: TRACE, parent_id: PARENT, sampled: true, state: "" });
    for (const [flags, sampled] of [
      ["00", false],
      ["02", false],
      ["03", true],
      ["ff", true],
    ] as const)
      assert.equal(parent(`00-${TRACE}-${PARENT}-${flags}`)?.sampled, sampled, flags);
  });

  test("white space around a value and the case of the name do not matter", () => {
    for (const value of [` ${VALID}`, `\t${VALID}`, `${VALID} `, `${VALID}\t`, `\t ${VALID} \t`])
      assert.equal(parent(value)?.trace_id, TRACE, JSON.stringify(value));
    for (const name of ["TraceParent", "TrAcEpArEnT", "TRACEPARENT"])
      assert.equal(readContext(`${name}: ${VALID}\r\n`)?.trace_id, TRACE, name);
  });

  test("a later version is read as far as it is known, and written as version 00", () => {
    for (const more of ["", "-what-the-future-will-be-like", "-"])
      assert.equal(parent(`cc-${TRACE}-${PARENT}-01${more}`)?.trace_id, TRACE, more);
    assert.equal(parent(`cc-${TRACE}-${PARENT}-01.what-the-future-will-be-like`), undefined);
    const read = parent(`cc-${TRACE}-${PARENT}-0f-more`);
    assert.ok(read);
    assert.equal(contextLines(read), `traceparent: ${VALID}\r\n`);
  });

  test("an invalid traceparent begins a new trace", () => {
    const invalid = [
      "",
      `${VALID}.`,
      `${VALID}-what-the-future-will-be-like`,
      `ff-${TRACE}-${PARENT}-01`,
      `.0-${TRACE}-${PARENT}-01`,
      `0.-${TRACE}-${PARENT}-01`,
      `000-${TRACE}-${PARENT}-01`,
      `0000-${TRACE}-${PARENT}-01`,
      `0-${TRACE}-${PARENT}-01`,
      `00-${"0".repeat(32)}-${PARENT}-01`,
      `00-.${TRACE.slice(1)}-${PARENT}-01`,
      `00-${TRACE.slice(1)}.-${PARENT}-01`,
      `00-${TRACE}3-${PARENT}-01`,
      `00-${TRACE.slice(1)}-${PARENT}-01`,
      `00-${TRACE}-${"0".repeat(16)}-01`,
      `00-${TRACE}-.${PARENT.slice(1)}-01`,
      `00-${TRACE}-${PARENT.slice(1)}.-01`,
      `00-${TRACE}-${PARENT}7-01`,
      `00-${TRACE}-${PARENT.slice(1)}-01`,
      `00-${TRACE}-${PARENT}-.0`,
      `00-${TRACE}-${PARENT}-0.`,
      `00-${TRACE}-${PARENT}-001`,
      `00-${TRACE}-${PARENT}-1`,
      `00-${"A".repeat(32)}-${PARENT}-01`,
      `${VALID}, ${VALID}`,
    ];
    for (const value of invalid) assert.equal(parent(value), undefined, value);
    assert.equal(readContext(`traceparent: ${VALID}\r\ntraceparent: ${VALID}\r\n`), undefined, "twice");
    assert.equal(readContext("tracestate: foo=1\r\n"), undefined, "tracestate alone");
  });

  test("tracestate is inherited in order, from all of its headers", () => {
    assert.equal(state("foo=1,bar=2"), "foo=1,bar=2");
    assert.equal(state("foo=1,bar=2", "rojo=1,congo=2", "baz=3"), "foo=1,bar=2,rojo=1,congo=2,baz=3");
    assert.equal(state("foo=1 \t , \t bar=2, \t baz=3"), "foo=1,bar=2,baz=3");
    assert.equal(state("", "foo=1", ""), "foo=1");
    assert.equal(state("foo=1,foo=2"), "foo=1,foo=2");
    assert.equal(state("\t foo=1 \t"), "foo=1");
    const key = "abcdefghijklmnopqrstuvwxyz0123456789_-*/";
    const visible = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at)).join("");
    const value = visible.replace(/[,=]/g, "");
    assert.equal(state(`${key}=${value}`), `${key}=${value}`);
    assert.equal(state(`${key}@a-z0-9_-*/=${value}`), `${key}@a-z0-9_-*/=${value}`);
    assert.equal(state("0foo@bar=1"), "0foo@bar=1");
    const most = Array.from({ length: 32 }, (_, at) => `bar${at}=${at}`).join(",");
    assert.equal(state(most), most);
    assert.equal(state(`${"z".repeat(256)}=1`), `${"z".repeat(256)}=1`);
    assert.equal(state(`foo=${"v".repeat(256)}`), `foo=${"v".repeat(256)}`);
  });

  test("an invalid tracestate is dropped, and the trace continues", () => {
    const thirty_three = Array.from({ length: 33 }, (_, at) => `bar${at}=${at}`).join(",");
    const invalid = ["foo =1", "FOO=1", "foo.bar=1", "@foo=1,bar=2", "foo=bar=baz", "foo=,bar=3", "foo", thirty_three];
    for (const value of [...invalid, `${"z".repeat(257)}=1`, `foo=${"v".repeat(257)}`])
      assert.equal(state(value), "", value);
  });

  test("what is written is read again", () => {
    const lines = contextLines({ trace_id: TRACE, parent_id: PARENT, sampled: false, state: "foo=1,bar=2" });
    assert.equal(lines, `traceparent: 00-${TRACE}-${PARENT}-00\r\ntracestate: foo=1,bar=2\r\n`);
    assert.deepEqual(readContext(lines), {
      trace_id: TRACE,
      parent_id: PARENT,
      sampled: false,
      state: "foo=1,bar=2",
    });
  });
});
