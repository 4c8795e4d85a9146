/** The dashboard's terminal without a browser: what a program writes, and what the screen then shows. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Emulator } from "../web/terminal/emulator.ts";
import { bytesOf, pasted } from "../web/terminal/keys.ts";
import { HISTORY } from "../web/terminal/screen.ts";
import { random, seed } from "./support.ts";

const ESC = "\u001b";

function terminal(rows = 4, cols = 10) {
  const answers: string[] = [];
  const emulator = new Emulator(rows, cols, (text) => answers.push(text));
  const write = (text: string): string => {
    emulator.write(new TextEncoder().encode(text));
    return emulator.screen.text();
  };
  return { emulator, screen: emulator.screen, answers, write };
}

/** What is written to a screen of 4 rows and 10 columns, and what it shows. */
const CASES: [name: string, written: string, shown: string][] = [
  ["a line feed without a carriage return keeps the column", "ab\r\ncd\nef", "ab\ncd\n  ef\n"],
  ["a full row does not wrap before the next character", "0123456789\rx", "x123456789\n\n\n"],
  ["a full row wraps with the next character", "0123456789x", "0123456789\nx\n\n"],
  ["without autowrap the last column is overwritten", `${ESC}[?7l0123456789xyz`, "012345678z\n\n\n"],
  ["the screen scrolls at the bottom", "1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5"],
  ["backspace and tab move the cursor", "ab\bc\td", "ac      d\n\n\n"],
  ["the cursor is positioned", `${ESC}[2;3Hx${ESC}[4;1Hy${ESC}[Az`, "\n  x\n z\ny"],
  [
    "a line is erased to its end and from its beginning",
    `abcdef${ESC}[3D${ESC}[K\r\nabcdef${ESC}[3D${ESC}[1K`,
    "abc\n    ef\n\n",
  ],
  ["erasing the screen keeps the cursor", `abc${ESC}[2Jd`, "   d\n\n\n"],
  ["characters are inserted and deleted", `abcdef\r${ESC}[2P${ESC}[@x`, "xcdef\n\n\n"],
  ["lines are inserted", `1\r\n2\r\n3\r\n4${ESC}[2;1H${ESC}[L`, "1\n\n2\n3"],
  ["lines are deleted", `1\r\n2\r\n3\r\n4${ESC}[2;1H${ESC}[M`, "1\n3\n4\n"],
  ["a scroll region scrolls up", `1\r\n2\r\n3\r\n4${ESC}[2;3r${ESC}[3;1H\n5`, "1\n3\n5\n4"],
  ["a scroll region scrolls down", `1\r\n2\r\n3\r\n4${ESC}[2;3r${ESC}[2;1H${ESC}M5`, "1\n5\n2\n4"],
  ["the alternate screen is entered and left", `main${ESC}[?1049h${ESC}[Hother${ESC}[?1049l!`, "main!\n\n\n"],
  ["the cursor is saved and restored", `ab${ESC}7cd${ESC}8X`, "abXd\n\n\n"],
  ["line-drawing characters are shown", `${ESC}(0lqk${ESC}(B lqk`, "┌─┐ lqk\n\n\n"],
  [
    "titles, hyperlinks and unknown sequences are not shown",
    `${ESC}]0;title\u0007a${ESC}]8;;http://x${ESC}\\b${ESC}P1$r${ESC}\\c`,
    "abc\n\n\n",
  ],
  ["wide and combining characters are shown", "日本x\r\ne\u0301x", "日本x\ne\u0301x\n\n"],
];

suite("the dashboard's terminal", () => {
  for (const [name, written, shown] of CASES) {
    test(name, () => {
      assert.equal(terminal().write(written), shown);
      // Cut anywhere it is the same.
      const { emulator, screen } = terminal();
      for (const byte of new TextEncoder().encode(written)) emulator.write(new Uint8Array([byte]));
      assert.equal(screen.text(), shown);
    });
  }

  test("all three colour formats are rendered, and erased cells keep the background", () => {
    const { screen, write } = terminal();
    write(`${ESC}[1;31ma${ESC}[38;5;196mb${ESC}[38;2;1;2;3;44mc${ESC}[K${ESC}[0md`);
    const [a, b, c, d, e] = (screen.lines[0]?.cells ?? []).map(({ style }) => style);
    assert.deepEqual(a, { bold: true, fg: 1 });
    assert.deepEqual(b, { bold: true, fg: "rgb(255,0,0)" });
    assert.deepEqual(c, { bold: true, fg: "rgb(1,2,3)", bg: 4 });
    assert.deepEqual(d, {});
    assert.deepEqual(e, { bg: 4 });
  });

  test("SGR parameters with colons work: colours and underline styles", () => {
    const { screen, write } = terminal();
    write(`${ESC}[1;4:3ma${ESC}[4:0mb${ESC}[38:2::1:2:3mc${ESC}[38:2:4:5:6md${ESC}[48:5:1me`);
    const styles = (screen.lines[0]?.cells ?? []).slice(0, 5).map(({ style }) => style);
    assert.deepEqual(styles, [
      { bold: true, underline: true },
      { bold: true },
      { bold: true, fg: "rgb(1,2,3)" },
      { bold: true, fg: "rgb(4,5,6)" },
      { bold: true, fg: "rgb(4,5,6)", bg: 1 },
    ]);
  });

  test("scrolled lines are kept up to a limit; those of the alternate screen are not", () => {
    const { screen, write } = terminal();
    write(Array.from({ length: HISTORY + 100 }, (_, n) => `${n}\r\n`).join(""));
    assert.equal(screen.history.length, HISTORY);
    const { left } = screen;
    write(`${ESC}[?1049h${"x\r\n".repeat(50)}`);
    assert.equal(screen.left, left);
  });

  test("cursor position and device attributes are reported", () => {
    const { answers, write } = terminal();
    write(`ab\r\nc${ESC}[6n${ESC}[c`);
    assert.deepEqual(answers, [`${ESC}[2;2R`, `${ESC}[?62;22c`]);
  });

  test("a smaller window keeps the line being typed", () => {
    const { screen, write } = terminal();
    write("1\r\n2\r\n3\r\n4");
    screen.resize(2, 5);
    assert.equal(screen.text(), "3\n4");
    assert.equal(write("!"), "3\n4!");
    screen.resize(4, 10);
    assert.equal(screen.text(), "3\n4!\n\n");
  });

  test("random input never changes the size of the screen", (t) => {
    const roll = random(seed(t));
    const next = (below: number): number => Math.floor(roll() * below);
    const { screen, write } = terminal(6, 12);
    const pieces = [
      "a",
      "日",
      "\u0301",
      "\r",
      "\n",
      "\b",
      "\t",
      ESC,
      `${ESC}[`,
      "1",
      "99",
      ";",
      "?",
      "7",
      "6",
      "1049",
      ..."ABCDHJKLMPSTXdhlmru@".split(""),
    ];
    for (let n = 0; n < 20_000; n++) {
      write(pieces[next(pieces.length)] ?? "");
      if (n % 500 === 0) screen.resize(1 + next(8), 1 + next(15));
      const shape =
        screen.lines.every(({ cells }) => cells.length === screen.cols) && screen.lines.length === screen.rows;
      assert.ok(shape && screen.row < screen.rows && screen.col < screen.cols, `step ${n}`);
    }
  });

  test("keys produce the bytes that terminals send; the browser's own shortcuts are kept", () => {
    const press = (key: string, more: object = {}, keypad = false) =>
      bytesOf({ key, ctrlKey: false, altKey: false, metaKey: false, shiftKey: false, ...more }, keypad);
    assert.equal(press("Enter"), "\r");
    assert.equal(press("c", { ctrlKey: true }), "\u0003");
    assert.equal(press("C", { ctrlKey: true, shiftKey: true }), undefined);
    assert.equal(press("ArrowUp"), `${ESC}[A`);
    assert.equal(press("ArrowUp", {}, true), `${ESC}OA`);
    assert.equal(press("ArrowRight", { ctrlKey: true }), `${ESC}[1;5C`);
    assert.equal(press("Delete"), `${ESC}[3~`);
    assert.equal(press("b", { altKey: true }), `${ESC}b`);
    assert.equal(press("Tab", { shiftKey: true }), undefined);
    assert.equal(press("x"), undefined, "comes as text");
    assert.equal(pasted("a\nb", false), "a\rb");
    assert.equal(pasted(`a${ESC}[201~b`, true), `${ESC}[200~ab${ESC}[201~`);
  });
});
