export interface Support {
  is: "acts" | "refused" | "warned";
  /** Why it is refused or has no effect. */
  why?: string;
  /** Values of a refused field that are accepted with a warning: clients send them as defaults. */
  tolerates?: readonly unknown[];
}

/** Supported JSON Schema keywords. */
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
  /** The field's name in Go clients that are generated from the document. */
  "x-go-name"?: string;
}
