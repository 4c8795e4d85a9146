/** Preview apps, put together: what they are made of, and how it is removed again. Part of wiring/git.ts. */
import type { SecretService } from "#apps/secrets.ts";
import type { AppService } from "#apps/service.ts";
import type { AppStore } from "#apps/store.ts";
import { principalOf } from "#auth/guard.ts";
import type { OrgService } from "#auth/orgs.ts";
import { Principal } from "#auth/principal.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { BuildService } from "#builds/service.ts";
import type { Caveat } from "#core/caveats.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import type { PreviewTokenInput } from "#git/preview-routes.ts";
import type { PreviewStore } from "#git/preview-store.ts";
import type { PreviewApps } from "#git/previews.ts";
import type { ImageCatalog } from "#machines/runtime/image-source.ts";
import type { Registry } from "#registry/service.ts";

export interface PreviewNeeds {
  apps: AppService;
  appStore: AppStore;
  secrets: SecretService;
  images: ImageCatalog;
  registry: Registry;
  builds: BuildService;
  tokens: TokenService;
  orgs: OrgService;
  clock: Clock;
  /** Whether an app with this id exists. */
  hasApp(id: string): Promise<boolean>;
}

export function previewApps(needs: PreviewNeeds): PreviewApps {
  const { apps, appStore, secrets, builds, registry, hasApp } = needs;
  return {
    exists: hasApp,

    async create(parent, name, ids) {
      const made = await apps.create(parent.org_id, { name, network: parent.network }, ids);
      // What the app may not reach, its previews may not reach either.
      await appStore.putEgress(made.id, await appStore.egress(parent.id));
    },

    async setSecrets(app_id, values) {
      await secrets.change(app_id, values);
    },

    async secrets(app_id, names) {
      if (names.length === 0) return {};
      const all = Object.entries(await secrets.reveal(app_id));
      return Object.fromEntries(all.filter(([name]) => names.includes(name)));
    },

    async remove({ id, org_id, app_name }) {
      if (await hasApp(id)) {
        await builds.cancelAll(id);
        await apps.delete(app_name, true).catch(unlessGone);
      }
      await removeImages(needs, org_id, app_name);
      await registry.deleteTags(org_id, app_name);
      await builds.sweepCaches(hasApp);
    },
  };
}

/** Names of what was built for it. The images go with them, unless something else needs them. */
async function removeImages({ images }: PreviewNeeds, org_id: string, app_name: string): Promise<void> {
  for (const { name, owner } of await images.list(org_id))
    if (owner === org_id && name.startsWith(`builds/${app_name}:`)) await images.remove(name, org_id).catch(unlessGone);
}

function unlessGone(thrown: unknown): void {
  if (!(thrown instanceof ApiError) || thrown.code !== "not_found") throw thrown;
}

/**
 * The caller's token with the preview in place of its app: what a token for the app may do with that, it may do with the
 * app's previews. All its other conditions stay, and it falls with the caller's.
 */
export async function previewTokenFor(
  { tokens, orgs, clock }: PreviewNeeds,
  store: PreviewStore,
  { caller, parent, org_slug, preview, ids }: PreviewTokenInput,
): Promise<string> {
  const { token_id, name, kind, expires_at, org, caveats } = principalOf(caller);
  const moved = caveats.map((caveat): Caveat => {
    if (caveat.type !== "apps") return caveat;
    return { type: "apps", apps: { [preview.app_name]: caveat.apps[parent.name] ?? 0 } };
  });
  const maker = new Principal(
    { id: token_id, name, kind, expires_at },
    { ...(org && { org }), caveats: moved, text: "" },
  );
  const owner = org ?? (await orgs.get(org_slug));
  const wanted = { org: owner, kind: "deploy", name, maker, app: preview.app_name } as const;
  const { text, token } = await tokens.create({ ...wanted, expiry_ms: GIT_LIMITS.push_ms }, ids);
  await store.addToken(preview.id, token.id, clock.now());
  return text;
}
