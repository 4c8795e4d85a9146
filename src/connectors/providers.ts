/**
 * The providers, one row each: address, placement of the credential, default endpoints, and which of a caller's headers
 * pass beyond the common ones. A new provider is a new row.
 */
import type { ConnectionType } from "./types.ts";

export interface Provider {
  title: string;
  category: "chat" | "code" | "forum" | "models" | "search" | "crawling" | "speech" | "storage" | "custom" | "platform";
  /** Null: each connector has its own. */
  base_url: string | null;
  placement: Placement;
  /** Ways to create a connector. */
  made_by: readonly (ConnectionType | "custom_api")[];
  /** Passed request headers; a trailing `*` is a prefix match. */
  headers: readonly string[];
  /** A cheap path that needs the credential: for tests and the snippet. */
  test_path: string;
  oauth?: OAuth;
}

/** Where the credential is placed, which the caller cannot change. */
export type Placement =
  | { in: "header"; name: string; prefix: string }
  | { in: "query"; name: string }
  | { in: "path" }
  /** AWS signature version 4, for object stores. */
  | { in: "signature" };

export interface OAuth {
  authorize_url: string;
  token_url: string;
  scopes: readonly string[];
  /** Separator of scopes. */
  separator: " " | ",";
  /** Where to read the account, and the fields with its id and name. */
  account: { path: string; id: string; name: string };
}

const bearer: Placement = { in: "header", name: "authorization", prefix: "Bearer" };
const key = (name: string, prefix = ""): Placement => ({ in: "header", name, prefix });
const MODELS = { category: "models", placement: bearer, made_by: ["api_key", "provisioned"] } as const;

export const PROVIDERS: Readonly<Record<string, Provider>> = {
  github: {
    title: "GitHub",
    category: "code",
    base_url: "https://api.github.com",
    placement: bearer,
    made_by: ["oauth", "api_key"],
    headers: ["x-github-*"],
    test_path: "/user",
    oauth: {
      authorize_url: "https://github.com/login/oauth/authorize",
      token_url: "https://github.com/login/oauth/access_token",
      scopes: ["repo", "read:user"],
      separator: " ",
      account: { path: "/user", id: "id", name: "login" },
    },
  },
  gitlab: {
    title: "GitLab",
    category: "code",
    base_url: "https://gitlab.com/api/v4",
    placement: bearer,
    made_by: ["oauth", "api_key"],
    headers: ["x-gitlab-*"],
    test_path: "/user",
    oauth: {
      authorize_url: "https://gitlab.com/oauth/authorize",
      token_url: "https://gitlab.com/oauth/token",
      scopes: ["read_api", "read_user"],
      separator: " ",
      account: { path: "/user", id: "id", name: "username" },
    },
  },
  slack: {
    title: "Slack, as a person",
    category: "chat",
    base_url: "https://slack.com/api",
    placement: bearer,
    made_by: ["oauth", "api_key"],
    headers: [],
    test_path: "/auth.test",
    oauth: {
      authorize_url: "https://slack.com/oauth/v2/authorize",
      token_url: "https://slack.com/api/oauth.v2.access",
      scopes: ["chat:write", "channels:read"],
      separator: ",",
      account: { path: "/auth.test", id: "team_id", name: "team" },
    },
  },
  slack_bot: {
    title: "Slack, as a bot",
    category: "chat",
    base_url: "https://slack.com/api",
    placement: bearer,
    made_by: ["api_key"],
    headers: [],
    test_path: "/auth.test",
  },
  discord: {
    title: "Discord",
    category: "chat",
    base_url: "https://discord.com/api/v10",
    placement: key("authorization", "Bot"),
    made_by: ["api_key"],
    headers: ["x-audit-log-reason"],
    test_path: "/users/@me",
  },
  discourse: {
    title: "Discourse",
    category: "forum",
    base_url: null,
    placement: key("api-key"),
    made_by: ["api_key"],
    headers: ["api-username"],
    test_path: "/session/current.json",
  },
  openai: {
    ...MODELS,
    title: "OpenAI",
    base_url: "https://api.openai.com",
    headers: ["openai-*"],
    test_path: "/v1/models",
  },
  anthropic: {
    ...MODELS,
    title: "Anthropic",
    base_url: "https://api.anthropic.com",
    placement: key("x-api-key"),
    headers: ["anthropic-*"],
    test_path: "/v1/models",
  },
  openrouter: {
    ...MODELS,
    title: "OpenRouter",
    base_url: "https://openrouter.ai/api",
    headers: ["http-referer", "x-title"],
    test_path: "/v1/key",
  },
  meta: { ...MODELS, title: "Meta Llama API", base_url: "https://api.llama.com", headers: [], test_path: "/v1/models" },
  ollama: { ...MODELS, title: "Ollama", base_url: "https://ollama.com", headers: [], test_path: "/api/tags" },
  groq: { ...MODELS, title: "Groq", base_url: "https://api.groq.com", headers: [], test_path: "/openai/v1/models" },
  mistral: { ...MODELS, title: "Mistral", base_url: "https://api.mistral.ai", headers: [], test_path: "/v1/models" },
  brave_search: {
    title: "Brave Search",
    category: "search",
    base_url: "https://api.search.brave.com",
    placement: key("x-subscription-token"),
    made_by: ["api_key", "provisioned"],
    headers: ["x-loc-*"],
    test_path: "/res/v1/web/search?q=test&count=1",
  },
  exa: {
    title: "Exa",
    category: "search",
    base_url: "https://api.exa.ai",
    placement: key("x-api-key"),
    made_by: ["api_key", "provisioned"],
    headers: [],
    test_path: "/websets/v0/websets",
  },
  tavily: {
    title: "Tavily",
    category: "search",
    base_url: "https://api.tavily.com",
    placement: bearer,
    made_by: ["api_key", "provisioned"],
    headers: [],
    test_path: "/usage",
  },
  firecrawl: {
    title: "Firecrawl",
    category: "crawling",
    base_url: "https://api.firecrawl.dev",
    placement: bearer,
    made_by: ["api_key", "provisioned"],
    headers: [],
    test_path: "/v1/team/credit-usage",
  },
  elevenlabs: {
    title: "ElevenLabs",
    category: "speech",
    base_url: "https://api.elevenlabs.io",
    placement: key("xi-api-key"),
    made_by: ["api_key", "provisioned"],
    headers: [],
    test_path: "/v1/user",
  },
  deepgram: {
    title: "Deepgram",
    category: "speech",
    base_url: "https://api.deepgram.com",
    placement: key("authorization", "Token"),
    made_by: ["api_key", "provisioned"],
    headers: ["dg-*"],
    test_path: "/v1/projects",
  },
  s3_object_store: {
    title: "An S3-compatible object store",
    category: "storage",
    base_url: null,
    placement: { in: "signature" },
    made_by: ["api_key"],
    headers: ["x-amz-meta-*", "x-amz-acl", "x-amz-copy-source*", "x-amz-storage-class", "x-amz-tagging", "content-md5"],
    test_path: "/",
  },
  custom_api: {
    title: "Any HTTP API",
    category: "custom",
    base_url: null,
    placement: bearer,
    made_by: ["custom_api"],
    headers: ["*"],
    test_path: "/",
  },
  sprites_admin: {
    title: "This platform",
    category: "platform",
    base_url: null,
    placement: bearer,
    made_by: ["internal"],
    headers: ["svc-machine-lease-nonce"],
    test_path: "/v1/tokens/current",
  },
};

export const PROVIDER_KEYS = Object.keys(PROVIDERS);

/** The operator's settings of a provider: `[connectors.github]`. */
export interface ProviderSetting {
  client_id?: string;
  client_secret?: string;
  /** For connectors whose key the platform provides. */
  api_key?: string;
  base_url?: string;
  authorize_url?: string;
  token_url?: string;
}
