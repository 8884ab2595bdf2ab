/** The part of JSON Schema that has types in TypeScript: these types, and a check that reports all problems. */

import type { Json, JsonObject } from "./contract.js";
import { type Problem, problem } from "./errors.js";
import { encode, isArray, isEqual, isObject, toPointer } from "./json.js";

/** The names of JSON types. */
export type TypeName = "string" | "integer" | "number" | "boolean" | "null" | "array" | "object";

/** A JSON Schema. The host checks all keywords; the kit checks those that are named here, which its types rely on. */
export interface Schema {
  readonly type?: TypeName | readonly TypeName[];
  readonly description?: string;
  /** The value of an input that is left out. */
  readonly default?: Json;
  readonly enum?: readonly Json[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly [keyword: string]: unknown;
}

/** The type of the values that fit a schema. */
export type Infer<S> = S extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : S extends { readonly type: readonly (infer Name)[] }
    ? InferType<Name, S>
    : S extends { readonly type: infer Name }
      ? InferType<Name, S>
      : Json;

type InferType<Name, S> = Name extends "string"
  ? string
  : Name extends "integer" | "number"
    ? number
    : Name extends "boolean"
      ? boolean
      : Name extends "null"
        ? null
        : Name extends "array"
          ? S extends { readonly items: infer Items }
            ? Infer<Items>[]
            : Json[]
          : S extends { readonly properties: infer P }
            ? S extends { readonly required: readonly (infer Required)[] }
              ? { [K in keyof P as K extends Required ? K : never]: Infer<P[K]> } & {
                  [K in keyof P as K extends Required ? never : K]?: Infer<P[K]>;
                }
              : { [K in keyof P]?: Infer<P[K]> }
            : JsonObject;

/** The input of a tool with these properties. Those with a default are always there. */
export type InputOf<P> = { -readonly [K in keyof P]: Infer<P[K]> };

/** Returns the schema of an object with these properties. One without a default is required. */
export const objectSchema = (properties: Readonly<Record<string, Schema>>): Schema => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => properties[name]?.default === undefined),
  additionalProperties: false,
});

/** Returns all problems of a value, each with a pointer that begins with `pointer`. */
export const findProblems = (schema: Schema, value: unknown, pointer = ""): Problem[] => {
  const { enum: allowed, properties = {}, required = [] } = schema;
  const kind = isArray(value) ? "array" : value == null ? "null" : typeof value;
  const types = [schema.type ?? kind].flat();
  const message = !types.some((name) => name === kind || (name === "integer" && Number.isInteger(value)))
    ? `expected \`${types.join(" | ")}\`, got \`${kind}\``
    : allowed && !allowed.some((each) => isEqual(each, value))
      ? `is none of ${encode(allowed)}`
      : "";
  if (message) return [problem(pointer, message)];
  if (!isArray(value) && !isObject(value)) return [];
  const missing = isArray(value) ? [] : required.filter((name) => !Object.hasOwn(value, name));
  return [
    ...Object.entries(value).flatMap(([name, member]) => {
      const own = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
      const inner = isArray(value) ? schema.items : own;
      const at = pointer + toPointer(name);
      if (inner === false) return [problem(at, "is unknown")];
      return isObject(inner) ? findProblems(inner, member, at) : [];
    }),
    ...missing.map((name) => problem(pointer + toPointer(name), "is missing")),
  ];
};
