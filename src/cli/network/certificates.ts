import { readFileSync } from "node:fs";
import type { Api } from "#client/api.ts";
import { messageOf } from "#core/assert.ts";
import { listTable, pagesOf } from "../lists.ts";
import { facts } from "../output.ts";
import { firstArgument, type Input, textOption, UsageError, type Verb } from "../verb.ts";

const APP: readonly [string, string] = ["<app>", "the app"];
const NAME: readonly [string, string] = ["<hostname>", "the host name"];

const paramsOf = (input: Input): { app_name: string; hostname: string } => ({
  app_name: firstArgument(input),
  hostname: input.args[1] ?? "",
});

export const certsList: Verb = {
  words: "certs list",
  summary: "List an app's host names and their certificates",
  arguments: [APP],
  completes: "apps",
  lists: true,
  examples: ["hangar certs list web"],
  async run(context, input) {
    const params = { app_name: firstArgument(input) };
    const pages = pagesOf(context.client, input, "GET /v1/apps/:app_name/certificates", { params });
    return await listTable(context, input, pages, {
      heads: ["host name", "kind", "status", "expires", "problem"],
      row: (one) => [one.hostname, one.kind, one.status, one.expires_at ?? "", one.problem ?? ""],
      none: "no certificates",
    });
  },
};

export const certsAdd: Verb = {
  words: "certs add",
  summary: "Add a host name to an app, with your own certificate or one from ACME",
  arguments: [APP, NAME],
  options: [
    ["--chain <file>", "your certificate chain, PEM; without it one is requested from the certificate authority"],
    ["--key <file>", "its private key, PEM"],
  ],
  completes: "apps",
  examples: ["hangar certs add web www.example.com", "hangar certs add web '*.example.com'"],
  async run({ client }, input) {
    const { app_name, hostname } = paramsOf(input);
    const [chain, key] = [textOption(input, "chain"), textOption(input, "key")];
    if ((chain === undefined) !== (key === undefined)) throw new UsageError("--chain and --key go together");
    const made =
      chain === undefined || key === undefined
        ? await client.call("POST /v1/apps/:app_name/certificates/acme", { params: { app_name }, body: { hostname } })
        : await client.call("POST /v1/apps/:app_name/certificates/custom", {
            params: { app_name },
            body: { hostname, fullchain: read(chain), private_key: read(key) },
          });
    const text = made.ownership.proved
      ? `${made.hostname} routes to ${app_name}; its certificate is ${made.status}`
      : proofWords(app_name, made);
    return { data: made, text };
  },
};

type Certificate = Api["GET /v1/apps/:app_name/certificates/:hostname"]["answer"];

/** The DNS record that verifies a host name, with instructions. */
function proofWords(app_name: string, { hostname, kind, ownership: { type, name, value } }: Certificate): string {
  const other = kind === "acme" ? [nextOf(hostname)] : [];
  return [
    `${hostname} is claimed; it routes to ${app_name} once its ownership is verified. Set this DNS record:`,
    "",
    `    ${name}. ${type} "${value}"`,
    "",
    `Then: hangar certs check ${app_name} '${hostname}'`,
    ...other,
  ].join("\n");
}

/** An http-01 certificate verifies the name itself; dns-01 needs the verification first. */
const nextOf = (hostname: string): string =>
  hostname.startsWith("*.")
    ? "Once it is verified, a certificate is ordered from the certificate authority (dns-01)."
    : "A certificate from the certificate authority verifies it, too; it is being ordered.";

const shown = (app_name: string, one: Certificate): string =>
  [
    facts([
      ["host name", one.hostname],
      ["kind", one.kind],
      ["status", one.status],
      ["expires", one.expires_at ?? "-"],
      ["proved", one.ownership.proved ? "yes" : "no"],
      ["problem", one.problem ?? "none"],
    ]),
    ...(one.ownership.proved ? [] : ["", proofWords(app_name, one)]),
  ].join("\n");

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (thrown) {
    throw new UsageError(messageOf(thrown));
  }
}

export const certsShow: Verb = {
  words: "certs show",
  summary: "Show a host name, its certificate, and the DNS record that verifies it",
  arguments: [APP, NAME],
  completes: "apps",
  examples: ["hangar certs show web www.example.com"],
  async run({ client }, input) {
    const params = paramsOf(input);
    const one = await client.call("GET /v1/apps/:app_name/certificates/:hostname", { params });
    return { data: one, text: shown(params.app_name, one) };
  },
};

export const certsCheck: Verb = {
  words: "certs check",
  summary: "Check the DNS record that verifies a host name, and retry a missing certificate",
  arguments: [APP, NAME],
  completes: "apps",
  examples: ["hangar certs check web www.example.com"],
  async run({ client }, input) {
    const params = paramsOf(input);
    const one = await client.call("POST /v1/apps/:app_name/certificates/:hostname/check", { params });
    return { data: one, text: shown(params.app_name, one) };
  },
};

export const certsRemove: Verb = {
  words: "certs remove",
  summary: "Remove a host name and its certificate from an app",
  arguments: [APP, NAME],
  completes: "apps",
  examples: ["hangar certs remove web www.example.com"],
  async run({ client }, input) {
    const params = paramsOf(input);
    await client.call("DELETE /v1/apps/:app_name/certificates/:hostname", { params });
    return { data: { ok: true }, text: `${params.hostname} no longer routes to ${params.app_name}` };
  },
};
