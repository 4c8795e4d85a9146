import assert from "node:assert/strict";
import { test } from "node:test";
import { CpuPlacement, parseCpuList } from "./cpu-placement.ts";

/** A host with so many CPUs; records requested moves. */
function host(cpus: number, movable = true) {
  const moves: [string, readonly number[]][] = [];
  const placement = new CpuPlacement(
    (id, to) => {
      moves.push([id, to]);
      return movable;
    },
    () => Array.from({ length: cpus }, (_, i) => i),
  );
  const start = (id: string, wanted = 1) => {
    const placed = placement.place(id, wanted);
    placement.running(id);
    return placed;
  };
  return { placement, moves, start };
}

test("CPU lists are parsed as the kernel writes them", () => {
  assert.deepEqual(parseCpuList("0,2-4\n"), [0, 2, 3, 4]);
  assert.deepEqual(parseCpuList("7"), [7]);
  assert.deepEqual(parseCpuList("\n"), []);
});

test("machines with one CPU are spread evenly over the host", () => {
  const { start } = host(2);
  const placed = Array.from({ length: 10 }, (_, i) => start(`m${i}`)?.[0]);
  assert.equal(placed.filter((cpu) => cpu === 0).length, 5);
  assert.equal(placed.filter((cpu) => cpu === 1).length, 5);
});

test("machines that are still starting count in the placement", () => {
  const { placement } = host(2);
  assert.deepEqual([placement.place("a", 1), placement.place("b", 1)], [[0], [1]]);
});

test("a machine with several CPUs gets the least used ones", () => {
  const { start } = host(4);
  assert.deepEqual(start("a"), [0]);
  assert.deepEqual(start("b", 3), [1, 2, 3]);
  assert.deepEqual(start("c", 2), [0, 1]);
});

test("a machine with as many CPUs as the host, or more, is not pinned", () => {
  const { start } = host(2);
  assert.equal(start("a", 2), undefined);
  assert.equal(start("b", 8), undefined);
});

test("a machine that restarts is placed again and counts once", () => {
  const { start, placement } = host(2);
  for (let boot = 0; boot < 5; boot++) assert.deepEqual(start("a"), [0]);
  assert.deepEqual(placement.place("b", 1), [1]);
});

test("when machines end, others move to the CPUs that became free", () => {
  const { start, placement, moves } = host(2);
  for (const id of ["a", "b", "c", "d"]) start(id);
  placement.release("a");
  assert.deepEqual(moves, [], "one against two is as even as three can be");
  placement.release("c");
  assert.deepEqual(moves, [["b", [0]]]);
  assert.deepEqual(
    ["b", "d"].map((id) => placement.cpusOf(id)),
    [[0], [1]],
  );
});

test("a machine that is still starting, or cannot be moved, keeps its CPUs", () => {
  const starting = host(2);
  for (const id of ["a", "b", "c", "d"]) starting.placement.place(id, 1);
  for (const id of ["a", "c"]) starting.placement.release(id);
  assert.deepEqual(starting.moves, []);
  const fixed = host(2, false);
  for (const id of ["a", "b", "c", "d"]) fixed.start(id);
  for (const id of ["a", "c"]) fixed.placement.release(id);
  assert.deepEqual(
    ["b", "d"].map((id) => fixed.placement.cpusOf(id)),
    [[1], [1]],
  );
});

test("machines from before a restart are counted on the CPUs the kernel reports", () => {
  const { placement } = host(2);
  placement.running("a", [0]);
  placement.running("all", [0, 1]);
  placement.running("ended", []);
  assert.deepEqual(placement.place("b", 1), [1]);
  assert.equal(placement.cpusOf("all"), undefined);
});
