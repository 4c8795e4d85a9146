/** Sends one e-mail by SMTP: STARTTLS or TLS, AUTH PLAIN or LOGIN, several recipients. */
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { guardedLookup, literalProblem } from "#core/public-addresses.ts";
import type { EmailConfig } from "./types.ts";

export interface Mail {
  subject: string;
  text: string;
  date: Date;
  message_id: string;
}

interface SendOptions {
  /** Connects to public addresses only. */
  guarded: boolean;
  timeout_ms: number;
}

/** Port on which TLS begins with the connection. */
const SMTPS_PORT = 465;
/** Limits of a reply's line length and number of lines; past them the session fails. */
const MOST_REPLY_CHARS = 16_384;

export async function sendMail(config: EmailConfig, mail: Mail, { guarded, timeout_ms }: SendOptions): Promise<void> {
  const { host, port } = config;
  const problem = guarded ? literalProblem(host) : undefined;
  if (problem) throw problem;
  const lookup = guarded ? { lookup: guardedLookup() } : {};
  const socket =
    port === SMTPS_PORT
      ? connectTls({ host, port, servername: host, ...lookup })
      : connectTcp({ host, port, ...lookup });
  const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeout_ms / 1000} s`)), timeout_ms);
  const session = new Session(socket);
  try {
    await once(socket, port === SMTPS_PORT ? "secureConnect" : "connect");
    await session.expect(220);
    await session.greet();
    if (port !== SMTPS_PORT) await session.secure(config);
    await session.logIn(config);
    await session.send(config, mail);
  } finally {
    clearTimeout(timer);
    session.close();
  }
}

class Session {
  #socket: Socket;
  #text = "";
  #extensions: string[] = [];
  #is_secure: boolean;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#is_secure = "encrypted" in socket;
    this.#socket = this.#listen(socket);
  }

  #listen(socket: Socket): Socket {
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      this.#text += text;
      if (this.#text.length > MOST_REPLY_CHARS) socket.destroy(new Error("the server's reply is too long"));
      this.#wake?.();
    });
    socket.on("error", (error) => this.#end(error));
    socket.on("close", () => this.#end(new Error("the server closed the connection")));
    return socket;
  }

  #end(error: Error): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  close(): void {
    this.#socket.end();
    this.#socket.destroySoon();
  }

  async #reply(): Promise<{ code: number; lines: string[] }> {
    for (;;) {
      const whole = /^(?:\d{3}-[^\n]*\n)*(\d{3})(?: [^\n]*)?\r?\n/.exec(this.#text);
      if (whole) {
        this.#text = this.#text.slice(whole[0].length);
        return { code: Number(whole[1]), lines: whole[0].trimEnd().split(/\r?\n/) };
      }
      if (this.#failure) throw this.#failure;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async expect(...codes: number[]): Promise<string[]> {
    const { code, lines } = await this.#reply();
    if (!codes.includes(code)) throw new Error(`the mail server answered ${lines.join(" ").slice(0, 300)}`);
    return lines;
  }

  async #command(text: string, ...codes: number[]): Promise<string[]> {
    if (/[\r\n]/.test(text)) throw new Error("a line break in an address or name");
    this.#socket.write(`${text}\r\n`);
    return await this.expect(...codes);
  }

  async greet(): Promise<void> {
    const lines = await this.#command("EHLO hangar", 250);
    this.#extensions = lines.slice(1).map((line) => line.slice(4).trim().toUpperCase());
  }

  async secure({ host, require_tls }: EmailConfig): Promise<void> {
    if (!this.#extensions.includes("STARTTLS")) {
      if (require_tls) throw new Error("the mail server offers no STARTTLS; require_tls: false sends without it");
      return;
    }
    await this.#command("STARTTLS", 220);
    // Discards plaintext that arrived before TLS.
    this.#text = "";
    this.#socket.removeAllListeners("data");
    const secured = connectTls({ socket: this.#socket, servername: host });
    await once(secured, "secureConnect");
    this.#socket = this.#listen(secured);
    this.#is_secure = true;
    await this.greet();
  }

  async logIn({ username, password = "" }: EmailConfig): Promise<void> {
    if (username === undefined) return;
    if (!this.#is_secure) throw new Error("the password is not sent without TLS");
    const offered = this.#extensions.find((line) => /^AUTH[ =]/.test(line))?.split(/[ =]+/) ?? [];
    if (offered.includes("PLAIN")) await this.#command(`AUTH PLAIN ${base64(`\0${username}\0${password}`)}`, 235);
    else if (offered.includes("LOGIN")) await this.#logInByQuestions(username, password);
    else throw new Error("the mail server offers neither AUTH PLAIN nor AUTH LOGIN");
  }

  /** AUTH LOGIN: the server asks for the name, then for the password. */
  async #logInByQuestions(username: string, password: string): Promise<void> {
    await this.#command("AUTH LOGIN", 334);
    await this.#command(base64(username), 334);
    await this.#command(base64(password), 235);
  }

  async send({ from, to }: EmailConfig, mail: Mail): Promise<void> {
    await this.#command(`MAIL FROM:<${from}>`, 250);
    for (const one of to) await this.#command(`RCPT TO:<${one}>`, 250, 251);
    await this.#command("DATA", 354);
    this.#socket.write(`${mailText({ from, to }, mail)}\r\n.\r\n`);
    await this.expect(250);
    await this.#command("QUIT", 221).catch(() => undefined);
  }
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** RFC 2047: header texts of any characters. */
const encodedWord = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) && text.length < 200
    ? text
    : (
        Buffer.from(text.replaceAll(/[\r\n]+/g, " ").slice(0, 300))
          .toString("base64")
          .match(/.{1,60}/g) ?? []
      )
        .map((part) => `=?utf-8?B?${part}?=`)
        .join("\r\n ");

function mailText({ from, to }: Pick<EmailConfig, "from" | "to">, { subject, text, date, message_id }: Mail): string {
  const body =
    Buffer.from(text)
      .toString("base64")
      .match(/.{1,76}/g) ?? [];
  return [
    `From: Hangar <${from}>`,
    `To: ${to.join(", ")}`,
    `Subject: ${encodedWord(subject)}`,
    `Date: ${date.toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${message_id}@${from.split("@")[1]}>`,
    "Auto-Submitted: auto-generated",
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: base64",
    "",
    // Base64 has no dots, so no line ends the message early.
    ...body,
  ].join("\r\n");
}
