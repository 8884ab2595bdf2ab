/** The part of JSON Schema that describes inputs of tools: its types, and a check that reports all problems. */

import type { Json, JsonObject } from "./contract.js";
import type { Problem } from "./errors.js";
import { encode, isObject, toPointer } from "./json.js";

/** The names of JSON types. */
export type TypeName = "string" | "integer" | "number" | "boolean" | "null" | "array" | "object";

/** A JSON Schema. Keywords that are not named here go to the host, which checks them. */
export interface Schema {
  readonly type?: TypeName | readonly TypeName[];
  readonly description?: string;
  /** The value of an input that is left out. */
  readonly default?: Json;
  readonly enum?: readonly Json[];
  readonly minimum?: number;
  readonly maximum?: number;
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
export function objectSchema(properties: Readonly<Record<string, Schema>>): Schema {
  const required = Object.keys(properties).filter((name) => properties[name]?.default === undefined);
  return { type: "object", properties, required, additionalProperties: false };
}

/** Returns all problems of a value, each with a pointer that begins with `pointer`. */
export function findProblems(schema: Schema, value: unknown, pointer = ""): Problem[] {
  const { type, enum: allowed, minimum = -Infinity, maximum = Infinity, items, properties = {} } = schema;
  const kind = value == null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const types = [type ?? []].flat();
  const isFitting = (name: string): boolean => name === kind || (name === "integer" && Number.isInteger(value));
  const isNumber = typeof value === "number";
  const message =
    types.length && !types.some(isFitting)
      ? `expected \`${types.join(" | ")}\`, got \`${kind}\``
      : allowed && !allowed.some((each) => encode(each) === encode(value))
        ? `is none of ${encode(allowed)}`
        : isNumber && value < minimum
          ? `must be at least ${minimum}`
          : isNumber && value > maximum
            ? `must be at most ${maximum}`
            : "";
  if (message) return [{ pointer, message }];
  if (!isObject(value) && !Array.isArray(value)) return [];
  const missing = (isObject(value) ? (schema.required ?? []) : []).filter((name) => !Object.hasOwn(value, name));
  return [
    ...Object.entries(value).flatMap(([name, member]) => {
      const own = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
      const inner = Array.isArray(value) ? items : own;
      const at = pointer + toPointer(name);
      if (inner === false) return [{ pointer: at, message: "is unknown" }];
      return isObject(inner) ? findProblems(inner, member, at) : [];
    }),
    ...missing.map((name) => ({ pointer: pointer + toPointer(name), message: "is missing" })),
  ];
}
