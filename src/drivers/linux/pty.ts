/**
 * Pseudo-terminals (pty): a program has one end, the platform the other. Node reads our end like any terminal, but
 * writes to it blocking, so a program that reads nothing would stop the whole platform; therefore we write without
 * blocking ourselves.
 */
import { closeSync, constants, fstatSync, writeSync } from "node:fs";
import { Duplex } from "node:stream";
import { ReadStream } from "node:tty";
import { CallError, ioctl, ioctlValue, openInRoot } from "./calls.ts";

/** Requests of the kernel's terminals; the same on x64 and arm64. */
const TTY = { lock: 0x40045431, peer: 0x5441, set_size: 0x5414, group: 0x540f };
const CLOEXEC = 0o2000000;
/** The device that makes a new pair each time it is opened. */
const PTMX = (5 << 8) | 2;

export interface Size {
  rows: number;
  cols: number;
}

export interface Pty {
  /** Our end, and that of the program. */
  ours: number;
  theirs: number;
}

/**
 * A pair that belongs to the terminals of a folder tree that is open (a machine's root), so that the program inside
 * finds its terminal by its name in its own /dev/pts. Nothing of the tree is believed: it must be that device.
 */
export function openPty(root: number, path: string): Pty {
  const ours = openInRoot(root, path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
  try {
    if (fstatSync(ours).rdev !== PTMX) throw new Error(`${path} is not what makes terminals`);
    ioctl(path, ours, TTY.lock, new Uint8Array(4));
    const theirs = ioctlValue(path, ours, TTY.peer, constants.O_RDWR | constants.O_NOCTTY | CLOEXEC);
    return { ours, theirs };
  } catch (thrown) {
    closeSync(ours);
    throw thrown;
  }
}

/** Keys in, screen out. Ends when nobody has the other end any more, or after `finish`. */
export class PtyStream extends Duplex {
  readonly #fd: number;
  readonly #screen: ReadStream;
  #silence: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #finishing = false;

  constructor(fd: number) {
    super();
    this.#fd = fd;
    this.#screen = new ReadStream(fd);
    this.#screen.on("data", (piece: Buffer) => {
      if (!this.push(piece)) this.#screen.pause();
      this.#rest();
    });
    // The kernel's way to say that the other end is closed; what was written before has come by then.
    this.#screen.on("error", () => this.#end()).on("end", () => this.#end());
    this.#screen.pause();
  }

  /** The number is ours no longer once the screen is gone: it may be anyone's. */
  get #open(): boolean {
    return !this.destroyed && !this.#screen.destroyed;
  }

  resize({ rows, cols }: Size): void {
    if (!this.#open) return;
    // struct winsize; what is left is the size in pixels, which nobody knows.
    ioctl("", this.#fd, TTY.set_size, new Uint8Array(new Uint16Array([rows, cols, 0, 0]).buffer));
  }

  /** The processes that have the terminal now, as this host numbers their group; undefined when there are none. */
  group(): number | undefined {
    if (!this.#open) return undefined;
    const answer = new Int32Array(1);
    try {
      ioctl("", this.#fd, TTY.group, new Uint8Array(answer.buffer));
    } catch (thrown) {
      if (thrown instanceof CallError) return undefined;
      throw thrown;
    }
    return answer[0] || undefined;
  }

  /** The program has ended. What it left running may keep the terminal open: then silence is the end. */
  finish(): void {
    this.#finishing = true;
    this.#rest();
  }

  override _read(): void {
    this.#screen.resume();
    this.#rest();
  }

  override _write(piece: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#put(piece, done, RETRY_MS);
  }

  /** As much as the program's input takes, the rest when it has read some. */
  #put(piece: Buffer, done: (error?: Error) => void, wait_ms: number): void {
    const taken = this.#open ? this.#take(piece) : piece.length;
    if (taken === piece.length) {
      done();
      return;
    }
    const next_ms = taken > 0 ? RETRY_MS : Math.min(wait_ms * 2, RETRY_MAX_MS);
    this.#retry = setTimeout(() => this.#put(piece.subarray(taken), done, next_ms), next_ms);
  }

  #take(piece: Buffer): number {
    try {
      return writeSync(this.#fd, piece);
    } catch (thrown) {
      // Closed at the other end: nobody reads this any more, and reading tells so.
      return (thrown as NodeJS.ErrnoException).code === "EAGAIN" ? 0 : piece.length;
    }
  }

  #rest(): void {
    clearTimeout(this.#silence);
    if (this.#finishing && !this.#screen.isPaused()) this.#silence = setTimeout(() => this.#end(), SILENCE_MS);
  }

  #end(): void {
    clearTimeout(this.#silence);
    if (!this.readableEnded && !this.destroyed) this.push(null);
    this.#finishing = false;
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#retry);
    this.#screen.destroy();
    done(error);
  }
}

const RETRY_MS = 5;
const RETRY_MAX_MS = 100;
/** What a program wrote is there when it ends; this is for the time until we have read it. */
const SILENCE_MS = 200;
