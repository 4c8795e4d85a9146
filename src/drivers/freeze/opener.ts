/**
 * Opens what AES-256-GCM sealed, into memory that is already there. Node's own decipher answers with new memory each time,
 * and that costs more than the decryption: 400 MB take 290 ms instead of 130. So OpenSSL is called directly, the one
 * that Node brings and exports for its addons. Where it does not, Node's decipher is used.
 */
import { createDecipheriv } from "node:crypto";
import { type Functions, ownFunctions } from "../linux/calls.ts";

export const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
/** Size of one cipher operation: small enough to reuse its memory in the CPU cache. */
export const SLICE = 64 * 1024;

export interface Opener extends Disposable {
  /** Decrypts `sealed`, the tag behind it, to the beginning of `plain`. False when it is not authentic. */
  open(nonce: Buffer, sealed: Buffer, plain: Buffer): boolean;
}

export function opener(key: Uint8Array): Opener {
  openssl ??= opensslFound() ?? "missing";
  return openssl === "missing" ? new NodeOpener(key) : new OpensslOpener(openssl, key);
}

export class NodeOpener implements Opener {
  readonly #key: Uint8Array;
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  open(nonce: Buffer, sealed: Buffer, plain: Buffer): boolean {
    const length = sealed.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(sealed.subarray(length));
    for (let at = 0; at < length; at += SLICE)
      decipher.update(sealed.subarray(at, Math.min(at + SLICE, length))).copy(plain, at);
    try {
      decipher.final();
      return true;
    } catch {
      return false;
    }
  }

  [Symbol.dispose](): void {}
}

type Openssl = ReturnType<typeof opensslFunctions>;
let openssl: Openssl | "missing" | undefined;

function opensslFunctions(functions: Functions) {
  const pointers = (count: number): string[] => Array<string>(count).fill("void *");
  return {
    newContext: functions("EVP_CIPHER_CTX_new", "void *", []),
    freeContext: functions("EVP_CIPHER_CTX_free", "void", pointers(1)),
    cipher: functions("EVP_aes_256_gcm", "void *", []),
    init: functions("EVP_DecryptInit_ex", "int", pointers(5)),
    control: functions("EVP_CIPHER_CTX_ctrl", "int", ["void *", "int", "int", "void *"]),
    update: functions("EVP_DecryptUpdate", "int", [...pointers(4), "int"]),
    final: functions("EVP_DecryptFinal_ex", "int", pointers(3)),
  };
}

function opensslFound(): Openssl | undefined {
  try {
    return opensslFunctions(ownFunctions());
  } catch {
    return undefined;
  }
}

const SET_TAG = 0x11;

export class OpensslOpener implements Opener {
  readonly #openssl: Openssl;
  readonly #context: unknown;
  /** OpenSSL says here how much it wrote. */
  readonly #written = Buffer.alloc(8);

  constructor(openssl: Openssl, key: Uint8Array) {
    this.#openssl = openssl;
    this.#context = openssl.newContext();
    this.#check(openssl.init(this.#context, openssl.cipher(), null, key, null));
  }

  open(nonce: Buffer, sealed: Buffer, plain: Buffer): boolean {
    const length = sealed.length - TAG_BYTES;
    if (nonce.length !== 12 || length < 0 || plain.length < length) throw new RangeError("no room for the plaintext");
    const { init, control, update, final } = this.#openssl;
    this.#check(init(this.#context, null, null, null, nonce));
    this.#check(control(this.#context, SET_TAG, TAG_BYTES, sealed.subarray(length)));
    this.#check(update(this.#context, plain, this.#written, sealed, length));
    return final(this.#context, this.#written, this.#written) === 1;
  }

  [Symbol.dispose](): void {
    this.#openssl.freeContext(this.#context);
  }

  #check(result: unknown): void {
    if (result !== 1) throw new Error("OpenSSL refused to decrypt");
  }
}
