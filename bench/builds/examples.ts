/** Two small web apps in folders, each with files that never change beside its code. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Sent once: what a real folder has beside its code. */
const ASSETS = 50;
const ASSET_BYTES = 64 * 1024;

export interface Example {
  /** Also the kind of its base, for `hangar images base`. */
  name: "node" | "python";
  port: number;
  file: string;
  code(says: string): string;
  setup: string;
  command: readonly string[];
}

export const EXAMPLES: readonly Example[] = [
  {
    name: "node",
    port: 18_311,
    file: "server.js",
    code: (says) => `require("http").createServer((_, answer) => answer.end("${says}")).listen(8080);\n`,
    setup: "node -e 'for (let i = 0; i < 3e7; i++);' && cp -r assets prepared",
    command: ["node", "server.js"],
  },
  {
    name: "python",
    port: 18_312,
    file: "server.py",
    code: (says) => `import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"${says}")
    do_POST = do_GET
    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`,
    setup: "python3 -m compileall -q /usr/lib/python3 && cp -r assets prepared",
    command: ["python3", "server.py"],
  },
];

/** The name of the base image, the same for Hangar and Podman. */
export const baseImage = ({ name }: Example): string => `bench-${name}:1`;

export function writeExample(folder: string, example: Example): void {
  mkdirSync(join(folder, "assets"), { recursive: true });
  for (let at = 0; at < ASSETS; at++)
    writeFileSync(join(folder, "assets", `${at}.txt`), `${at}\n`.repeat(ASSET_BYTES / 4));
  const lines = [
    `FROM ${baseImage(example)}`,
    "WORKDIR /app",
    "COPY assets ./assets",
    `RUN ${example.setup}`,
    "COPY . .",
    `CMD ${JSON.stringify(example.command)}`,
  ];
  writeFileSync(join(folder, "Dockerfile"), `${lines.join("\n")}\n`);
  writeFileSync(join(folder, ".dockerignore"), "hangar.toml\n");
  writeFileSync(join(folder, "hangar.toml"), appFile(example));
}

export function writeCode(folder: string, example: Example, says: string): void {
  writeFileSync(join(folder, example.file), example.code(says));
}

export const appName = ({ name }: Example): string => `bench-${name}`;

const appFile = (example: Example): string => `app = "${appName(example)}"

[[services]]
internal_port = 8080
protocol = "tcp"

[[services.ports]]
port = ${example.port}
handlers = ["http"]

[[services.http_checks]]
path = "/"
interval = "1s"
timeout = "5s"
grace_period = "1s"
`;
