/**
 * Pseudo-terminals (pty): a program has one end, the platform the other. Node reads our end like any terminal, but
 * writes to it blocking, so a program that reads nothing would stop the whole platform; therefore we write without
 * blocking ourselves.
 */
import { closeSync, constants, fstatSync, writeSync } from "node:fs";
import { Duplex } from "node:stream";
import { ReadStream } from "node:tty";
import { CallError, ioctl, ioctlValue, openInRoot } from "./calls.ts";

/** ioctl numbers of terminals; the same on x64 and arm64. */
const TTY = { lock: 0x40045431, peer: 0x5441, set_size: 0x5414, group: 0x540f };
const CLOEXEC = 0o2000000;
/** The device that creates a new pair at each open. */
const PTMX = (5 << 8) | 2;

export interface Size {
  rows: number;
  cols: number;
}

export interface Pty {
  /** Our end (master), and that of the program. */
  ours: number;
  theirs: number;
}

/**
 * Opens a pty pair of the devpts in a machine's root, so that the program finds its terminal in its own /dev/pts. The
 * device is verified, because the tree is untrusted.
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

/** Terminal input and output. Ends when the other end is closed, or after `finish`. */
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
    // EIO means that the other end is closed; all output has been read by then.
    this.#screen.on("error", () => this.#end()).on("end", () => this.#end());
    this.#screen.pause();
  }

  /** Once the stream is closed, the descriptor number may be reused. */
  get #open(): boolean {
    return !this.destroyed && !this.#screen.destroyed;
  }

  resize({ rows, cols }: Size): void {
    if (!this.#open) return;
    // struct winsize; the size in pixels is unknown.
    ioctl("", this.#fd, TTY.set_size, new Uint8Array(new Uint16Array([rows, cols, 0, 0]).buffer));
  }

  /** The foreground process group, in host pids; undefined when there is none. */
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

  /** The program has exited. Its children may keep the terminal open: then silence is the end. */
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

  /** Writes as much as the input buffer takes, the rest later. */
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
      // Closed at the other end; reading reports it.
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
/** A program's output is there when it exits; this is the time to read it. */
const SILENCE_MS = 200;
