/** A little less than Git allows: letters, digits and `. _ - + @`, in parts between slashes. */
export const BRANCH = "^(?!.*(\\.\\.|\\.lock(/|$)|\\.(/|$)|/\\.))[A-Za-z0-9_][\\w.+@-]*(/[\\w.+@-]+)*$";

export const PREVIEW_BRANCH = new RegExp(BRANCH);
