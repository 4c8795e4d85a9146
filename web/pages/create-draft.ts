/** What the form for a new machine holds, and the requests made from it. */
export interface Draft {
  app: string;
  image: string;
  name: string;
  region: string;
  size: string;
  port: string;
  autostop: string;
  restart: string;
  env: string;
  command: string;
}

export const EMPTY: Draft = {
  app: "",
  image: "hangar/hello",
  name: "",
  region: "",
  size: "",
  port: "8080",
  autostop: "off",
  restart: "",
  env: "",
  command: "",
};

function envOf(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line.includes("="))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

function serviceOf({ port, autostop }: Draft): object {
  return {
    protocol: "tcp",
    internal_port: Number(port),
    ports: [
      { port: 80, handlers: ["http"] },
      { port: 443, handlers: ["tls", "http"] },
    ],
    autostart: true,
    autostop,
  };
}

/** Splits a command like a shell; quoted text stays together. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}

/** The request body. */
export function bodyOf(draft: Draft): Record<string, unknown> {
  const env = envOf(draft.env);
  const cmd = wordsOf(draft.command);
  return {
    ...(draft.name.trim() ? { name: draft.name.trim() } : {}),
    ...(draft.region ? { region: draft.region } : {}),
    config: {
      image: draft.image.trim() || EMPTY.image,
      ...(draft.size ? { size: draft.size } : {}),
      ...(Object.keys(env).length > 0 ? { env } : {}),
      ...(cmd.length > 0 ? { init: { cmd } } : {}),
      ...(draft.restart ? { restart: { policy: draft.restart } } : {}),
      ...(draft.port ? { services: [serviceOf(draft)] } : {}),
    },
  };
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export const curlOf = ({ app }: Draft, json: string): string =>
  `curl -X POST ${location.origin}/v1/apps/${encodeURIComponent(app || "APP")}/machines \\
  -H "Authorization: Bearer $(hangar auth token)" \\
  -H 'content-type: application/json' \\
  -d ${quoted(json)}`;

/** The equivalent command. */
export function shellOf(draft: Draft): string {
  const env = Object.entries(envOf(draft.env)).map(([name, value]) => `--env ${quoted(`${name}=${value}`)}`);
  const parts = [
    `hangar machines run ${draft.image.trim() || EMPTY.image} --app ${draft.app || "APP"}`,
    draft.name.trim() ? `--name ${draft.name.trim()}` : "",
    draft.region ? `--region ${draft.region}` : "",
    draft.size ? `--size ${draft.size}` : "",
    draft.restart ? `--restart ${draft.restart}` : "",
    draft.port ? `--port 80:${draft.port}/http 443:${draft.port}/tls,http --autostop ${draft.autostop}` : "",
    ...env,
    ...(draft.command ? [`-- ${draft.command}`] : []),
  ];
  return parts.filter(Boolean).join(" \\\n  ");
}

export const scriptOf = ({ app }: Draft, json: string): string =>
  `const machine = await client.call("POST /v1/apps/:app_name/machines", {
  params: { app_name: ${JSON.stringify(app || "APP")} },
  body: ${json.replaceAll("\n", "\n  ")},
});`;
