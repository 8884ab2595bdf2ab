/** The part of JSON Schema that has types in TypeScript: these types, and a check that reports all problems. */
import type { Json, JsonObject } from "./contract.js";
import { type Problem } from "./errors.js";
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
export type Infer<S> = S extends {
    readonly enum: readonly (infer Value)[];
} ? Value : S extends {
    readonly type: readonly (infer Name)[];
} ? InferType<Name, S> : S extends {
    readonly type: infer Name;
} ? InferType<Name, S> : Json;
type InferType<Name, S> = Name extends "string" ? string : Name extends "integer" | "number" ? number : Name extends "boolean" ? boolean : Name extends "null" ? null : Name extends "array" ? S extends {
    readonly items: infer Items;
} ? Infer<Items>[] : Json[] : S extends {
    readonly properties: infer P;
} ? S extends {
    readonly required: readonly (infer Required)[];
} ? {
    [K in keyof P as K extends Required ? K : never]: Infer<P[K]>;
} & {
    [K in keyof P as K extends Required ? never : K]?: Infer<P[K]>;
} : {
    [K in keyof P]?: Infer<P[K]>;
} : JsonObject;
/** The input of a tool with these properties. Those with a default are always there. */
export type InputOf<P> = {
    -readonly [K in keyof P]: Infer<P[K]>;
};
/** Returns the schema of an object with these properties. One without a default is required. */
export declare const objectSchema: (properties: Readonly<Record<string, Schema>>) => Schema;
/** Returns all problems of a value, each with a pointer that begins with `pointer`. */
export declare const findProblems: (schema: Schema, value: unknown, pointer?: string) => Problem[];
export {};
