/** Parses the first message of a TLS connection far enough to find its server name. */
export interface Hello {
  servername: string;
  alpn: string[];
}

const RECORD_HEADER = 5;
const MAX_BYTES = 16 * 1024;

/** Parses a TLS ClientHello; "more" when bytes are missing, undefined when this is not TLS. */
export function readHello(bytes: Buffer): Hello | "more" | undefined {
  if (bytes.length < RECORD_HEADER) return bytes.length === 0 || bytes[0] === 22 ? "more" : undefined;
  // Handshake record, TLS 1.x.
  if (bytes[0] !== 22 || bytes[1] !== 3) return undefined;
  const message = handshakeMessage(bytes);
  if (message === "more") return bytes.length > MAX_BYTES ? undefined : "more";
  if (!message) return undefined;
  try {
    return parseHello(message);
  } catch (thrown) {
    // A length beyond the message: not a ClientHello.
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** The first handshake message, which may span several records. */
function handshakeMessage(bytes: Buffer): Buffer | "more" | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at + RECORD_HEADER <= bytes.length; ) {
    if (bytes[at] !== 22) return undefined;
    const end = at + RECORD_HEADER + bytes.readUInt16BE(at + 3);
    if (end > bytes.length || end === at + RECORD_HEADER) break;
    parts.push(bytes.subarray(at + RECORD_HEADER, end));
    at = end;
    const message = wholeMessage(Buffer.concat(parts));
    if (message !== "more") return message;
  }
  return "more";
}

function wholeMessage(bytes: Buffer): Buffer | "more" | undefined {
  if (bytes.length < 4) return "more";
  const length = bytes.readUIntBE(1, 3);
  if (bytes[0] !== 1 || length > MAX_BYTES) return undefined;
  return bytes.length >= length + 4 ? bytes.subarray(4, length + 4) : "more";
}

function parseHello(message: Buffer): Hello {
  // Version (2), random (32), session id, cipher suites, compression methods, extensions.
  let at = 34;
  at += 1 + message.readUInt8(at);
  at += 2 + message.readUInt16BE(at);
  at += 1 + message.readUInt8(at);
  const hello: Hello = { servername: "", alpn: [] };
  if (at + 2 > message.length) return hello;
  const end = at + 2 + message.readUInt16BE(at);
  at += 2;
  while (at + 4 <= end) {
    const type = message.readUInt16BE(at);
    const length = message.readUInt16BE(at + 2);
    const body = message.subarray(at + 4, at + 4 + length);
    if (type === 0) hello.servername = serverName(body);
    if (type === 16) hello.alpn = protocolNames(body);
    at += 4 + length;
  }
  return hello;
}

/** The host name (type 0) of the server_name extension. */
function serverName(body: Buffer): string {
  if (body.length < 5 || body[2] !== 0) return "";
  const length = body.readUInt16BE(3);
  const name = body.toString("latin1", 5, 5 + length).toLowerCase();
  return /^[a-z0-9._-]{1,255}$/.test(name) ? name.replace(/\.$/, "") : "";
}

function protocolNames(body: Buffer): string[] {
  const names: string[] = [];
  for (let at = 2; at < body.length; at += 1 + body.readUInt8(at)) {
    names.push(body.toString("latin1", at + 1, at + 1 + body.readUInt8(at)));
  }
  return names;
}
