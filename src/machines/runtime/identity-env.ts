/** Environment variables from which AWS SDKs read a machine's identity without configuration. */
const TOKEN_FILE = "/.svc/oidc_token";

/** Whether a machine names the AWS role it assumes. */
export function wantsAwsRole(env: Record<string, string>): boolean {
  return env["AWS_ROLE_ARN"] !== undefined && env["AWS_WEB_IDENTITY_TOKEN_FILE"] === undefined;
}

/**
 * Environment variables to add for cloud SDKs. The user only names the role; the identity module writes and refreshes
 * the token file.
 */
export function identityEnv(
  env: Record<string, string>,
  { app_name, id }: { app_name: string; id: string },
): Record<string, string> {
  if (!wantsAwsRole(env)) return {};
  return { AWS_WEB_IDENTITY_TOKEN_FILE: TOKEN_FILE, AWS_ROLE_SESSION_NAME: `${app_name}-${id}`.slice(0, 64) };
}
