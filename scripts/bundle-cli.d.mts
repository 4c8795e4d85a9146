export function bundleCli(root: string, main: string, place: string): { text: string; files: string[] };
export function keepCode(node: string, bundle: string): void;
