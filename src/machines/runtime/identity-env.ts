/** Where a machine finds its identity without asking: the variables AWS SDKs look for. */
const TOKEN_FILE = "/.svc/oidc_token";

/** Whether a machine has said which AWS role it is to take on. */
export function wantsAwsRole(env: Record<string, string>): boolean {
  return env["AWS_ROLE_ARN"] !== undefined && env["AWS_WEB_IDENTITY_TOKEN_FILE"] === undefined;
}

/**
 * The variables to add, from the ones a machine is given. The role is all a person has to name; the token file
 * is written and refreshed by the identity module.
 */
export function identityEnv(
  env: Record<string, string>,
  { app_name, id }: { app_name: string; id: string },
): Record<string, string> {
  if (!wantsAwsRole(env)) return {};
  return { AWS_WEB_IDENTITY_TOKEN_FILE: TOKEN_FILE, AWS_ROLE_SESSION_NAME: `${app_name}-${id}`.slice(0, 64) };
}
