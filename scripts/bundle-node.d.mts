export function bundleNode(root: string): Record<string, string>;
