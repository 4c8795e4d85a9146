/** Small Dockerfiles, one for each kind of app. Dependencies come before the code, so that their layer is cached. */

/** The port that a server listens on, also set as PORT. */
export const PORT = 8080;

type Dockerfile = (base: string) => string;

const lines = (...text: (string | false)[]): string => `${text.filter((line) => line !== false).join("\n")}\n`;
const command = (argv: readonly string[]): string => `CMD ${JSON.stringify(argv)}`;
/** Made by `hangar images base`: what Debian has as packages can be in it. */
const isOwnBase = (base: string): boolean => base.startsWith("hangar/");
const LISTENS = [`ENV PORT=${PORT}`, `EXPOSE ${PORT}`] as const;

/** Debian's Node finds its packages (node-express) by itself; npm does not know them. */
const NODE_HAS_ALL = `node -e 'Object.keys(require("./package.json").dependencies ?? {}).forEach((name) => require.resolve(name))'`;

export const nodeImage =
  ({ command: words, locked, builds }: { command: string[]; locked: boolean; builds: boolean }): Dockerfile =>
  (base) =>
    lines(
      `FROM ${base}`,
      "WORKDIR /app",
      "COPY package*.json ./",
      // The build needs development dependencies, which are removed afterwards.
      `RUN ${!locked && isOwnBase(base) ? `${NODE_HAS_ALL} || ` : ""}${locked ? "npm ci" : "npm install"}${builds ? "" : " --omit=dev"}`,
      "COPY . .",
      builds && "RUN npm run build && npm prune --omit=dev",
      "ENV NODE_ENV=production",
      ...LISTENS,
      command(words),
    );

export const pythonImage =
  ({ command: words, list }: { command: string[]; list: string | undefined }): Dockerfile =>
  (base) =>
    lines(
      `FROM ${base}`,
      "WORKDIR /app",
      // Debian's Python installs packages into virtual environments only; those of the image (python3-flask) count as installed.
      list !== undefined && "RUN python3 -m venv --system-site-packages /venv",
      list !== undefined && "ENV PATH=/venv/bin:$PATH",
      list === "requirements.txt" && "COPY requirements.txt ./",
      list === "requirements.txt" && "RUN pip install --no-cache-dir -r requirements.txt",
      "COPY . .",
      list === "pyproject.toml" && "RUN pip install --no-cache-dir .",
      "ENV PYTHONUNBUFFERED=1",
      ...LISTENS,
      command(words),
    );

export const goImage: Dockerfile = (base) =>
  lines(
    `FROM ${base} AS build`,
    "WORKDIR /src",
    "COPY go.* ./",
    "RUN go mod download",
    "COPY . .",
    "RUN CGO_ENABLED=0 go build -o /app .",
    "FROM scratch",
    "COPY --from=build /etc/ssl/certs /etc/ssl/certs",
    "COPY --from=build /app /app",
    ...LISTENS,
    command(["/app"]),
  );

export const rubyImage =
  (argv: string[]): Dockerfile =>
  (base) =>
    lines(
      `FROM ${base}`,
      // Some gems are compiled; images of Ruby without a compiler are Debian's.
      "RUN command -v make || (apt-get update && apt-get install -y --no-install-recommends build-essential)",
      "WORKDIR /app",
      "COPY Gemfile* ./",
      // Gems of the image (ruby-sinatra) count as installed.
      "RUN bundle install --local || bundle install",
      "COPY . .",
      ...LISTENS,
      command(argv),
    );

export const phpImage =
  (root: string, composer: boolean): Dockerfile =>
  (base) =>
    lines(
      `FROM ${base}`,
      "WORKDIR /app",
      "COPY . .",
      composer && !isOwnBase(base) && "COPY --from=composer:2 /usr/bin/composer /usr/bin/composer",
      composer && "RUN composer install --no-dev",
      ...LISTENS,
      command(["php", "-S", `0.0.0.0:${PORT}`, "-t", root]),
    );

export const staticImage: Dockerfile = (base) =>
  lines(
    `FROM ${base}`,
    "COPY . /srv",
    `EXPOSE ${PORT}`,
    command(["busybox", "httpd", "-f", "-v", "-p", String(PORT), "-h", "/srv"]),
  );
