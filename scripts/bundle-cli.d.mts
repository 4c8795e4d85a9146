export function bundleCli(root: string, main: string, place: string): { text: string; files: string[] };
