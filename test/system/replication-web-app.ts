/** A web application that is not ours: Python's http.server and sqlite3, with one table of notes. */
import { until } from "../support.ts";
import { Child } from "./child.ts";
import type { Stage } from "./replication-support.ts";

const PROGRAM = `
import http.server, json, sqlite3, sys, threading, urllib.parse
path, port = sys.argv[1], int(sys.argv[2])
local = threading.local()
def db():
    if not hasattr(local, "db"):
        local.db = sqlite3.connect(path, isolation_level=None, timeout=10)
    return local.db
class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def answer(self, status, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, text in headers: self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def note(self):
        return urllib.parse.unquote(self.path.split("?")[0].rsplit("/", 1)[1])
    def do_GET(self):
        if self.path.startswith("/static/"): return self.answer(200, {"static": port})
        if self.path == "/visit":
            db().execute("INSERT INTO notes VALUES (?, 'visit')", (str(self.headers["x-id"]),))
            return self.answer(200, {"port": port})
        try:
            rows = db().execute("SELECT text FROM notes WHERE id = ?", (self.note(),)).fetchall()
            self.answer(200 if rows else 404, {"port": port, "text": rows and rows[0][0]})
        except sqlite3.Error as error:
            self.answer(500, {"error": str(error), "port": port})
    do_HEAD = do_GET
    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"] or 0)).decode()
        try:
            # The id is the request's own: done twice, it is done once.
            db().execute("INSERT OR IGNORE INTO notes VALUES (?, ?)", (self.note(), text))
            self.answer(201, {"port": port}, [("set-cookie", "session=1")])
        except sqlite3.Error as error:
            self.answer(500, {"error": str(error), "port": port})
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
server = Server(("127.0.0.1", port), App)
print("ready", flush=True)
server.serve_forever()
`;

export class WebApp {
  readonly #child: Child;

  private constructor(child: Child) {
    this.#child = child;
  }

  static async start(stage: Stage, path: string, port: number): Promise<WebApp> {
    const child = new Child("python3", ["-u", "-c", PROGRAM, path, String(port)]);
    stage.later(() => child.kill());
    await until("the application listens", () => child.lines.includes("ready"));
    return new WebApp(child);
  }

  async kill(): Promise<void> {
    await this.#child.kill();
  }
}
