export interface Support {
  is: "acts" | "refused" | "warned";
  /** Why it is refused or has no effect. */
  why?: string;
  /** Values of a refused field that are taken with a warning: clients send them without asking for anything. */
  tolerates?: readonly unknown[];
}

/** Schemas of ours are plain JSON Schema, made by `schema.ts`; these are the keywords that are understood. */
export interface JsonSchema {
  type?: string;
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  additionalProperties?: unknown;
  patternProperties?: Record<string, JsonSchema>;
  anyOf?: readonly JsonSchema[];
  const?: unknown;
  items?: JsonSchema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  multipleOf?: number;
  title?: string;
  description?: string;
  /** What the platform does with the field. */
  "x-support"?: Support;
}
