import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { parseCidr } from "./cidr.ts";
import { closedRange } from "./egress.ts";
import { namesAllowed, parseEgressTarget } from "./egress-policy.ts";

suite("egress policy", () => {
  const shown = (text: string): string | undefined => {
    const target = parseEgressTarget(text);
    return target && [target.cidr?.text ?? target.name, target.ports?.join("-"), target.protocol].join(" ").trim();
  };

  test("egress entries are parsed as ranges, names, ports and protocols", () => {
    for (const [text, read] of [
      ["203.0.113.0/24", "203.0.113.0/24"],
      ["203.0.113.9/24", "203.0.113.0/24"],
      ["203.0.113.0/24:443", "203.0.113.0/24 443-443"],
      ["203.0.113.7:8000-8100/udp", "203.0.113.7 8000-8100 udp"],
      ["2001:db8::/32", "2001:db8::/32"],
      ["2001:db8::1", "2001:db8::1"],
      ["2001:db8::1/udp", "2001:db8::1  udp"],
      ["[2001:db8::/32]:443/tcp", "2001:db8::/32 443-443 tcp"],
      ["API.example.com.", "api.example.com"],
      ["*.example.com:443", "*.example.com 443-443"],
    ] as const)
      assert.equal(shown(text), read, text);
  });

  test("an egress entry that is neither a range nor a name is refused", () => {
    for (const text of ["", "localhost", "10.0.0.0/33", "a..b", "*", "*.com.*", "x.example:0", "x.example:9-1"])
      assert.equal(shown(text), undefined, text);
    for (const text of ["x.example:70000", "x.example/icmp", "http://x.example", "1.2.3", "x.example; drop", "[::1"])
      assert.equal(shown(text), undefined, text);
  });

  test("a name is allowed by an equal entry or by a wildcard above it", () => {
    const policy = { mode: "list", allow: ["api.example.com:443", "*.cdn.example"] } as const;
    for (const name of ["api.example.com", "a.cdn.example", "a.b.cdn.example"]) assert.ok(namesAllowed(policy, name));
    for (const name of ["example.com", "x.api.example.com", "cdn.example", "evilcdn.example"])
      assert.ok(!namesAllowed(policy, name), name);
    assert.ok(namesAllowed({ mode: "all", allow: [] }, "x.example"));
    assert.ok(!namesAllowed({ mode: "none", allow: [] }, "x.example"));
  });

  const closed = (text: string, ...opened: string[]): string | undefined => {
    const read = (one: string) => parseCidr(one) ?? assert.fail(one);
    return closedRange(read(text), opened.map(read))?.text;
  };

  test("metadata services, loopback and private networks are blocked, public addresses are not", () => {
    for (const [text, within] of [
      ["169.254.169.254", "169.254.0.0/16"],
      ["100.100.100.200", "100.64.0.0/10"],
      ["168.63.129.16", "168.63.129.16"],
      ["fd00:ec2::254", "fc00::/7"],
      ["64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:0/112"],
      ["::ffff:10.0.0.1", "::ffff:0:0/96"],
      ["::1", "::/96"],
    ] as const)
      assert.equal(closed(text), within, text);
    for (const text of ["8.8.8.8", "172.32.0.1", "2001:db8::1", "64:ff9b::808:808", "0.0.0.0/0"])
      assert.equal(closed(text), undefined, text);
  });

  test("a range that the operator opened is reachable, and nothing beside it", () => {
    assert.equal(closed("10.1.2.3", "10.1.0.0/16"), undefined);
    assert.equal(closed("10.2.2.3", "10.1.0.0/16"), "10.0.0.0/8");
    assert.equal(closed("10.0.0.0/8", "10.1.0.0/16"), "10.0.0.0/8");
  });
});
