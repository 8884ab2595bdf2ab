/** The part of JSON Schema that describes inputs of tools: its types, and a check that reports all problems. */
import { encode, isObject, toPointer } from "./json.js";
/** Returns the schema of an object with these properties. One without a default is required. */
export function objectSchema(properties) {
    const required = Object.keys(properties).filter((name) => properties[name]?.default === undefined);
    return { type: "object", properties, required, additionalProperties: false };
}
/** Returns all problems of a value, each with a pointer that begins with `pointer`. */
export function findProblems(schema, value, pointer = "") {
    const { type, enum: allowed, minimum = -Infinity, maximum = Infinity, items, properties = {} } = schema;
    const kind = value == null ? "null" : Array.isArray(value) ? "array" : typeof value;
    const types = [type ?? []].flat();
    const isFitting = (name) => name === kind || (name === "integer" && Number.isInteger(value));
    const isNumber = typeof value === "number";
    const message = types.length && !types.some(isFitting)
        ? `expected \`${types.join(" | ")}\`, got \`${kind}\``
        : allowed && !allowed.some((each) => encode(each) === encode(value))
            ? `is none of ${encode(allowed)}`
            : isNumber && value < minimum
                ? `must be at least ${minimum}`
                : isNumber && value > maximum
                    ? `must be at most ${maximum}`
                    : "";
    if (message)
        return [{ pointer, message }];
    if (!isObject(value) && !Array.isArray(value))
        return [];
    const missing = (isObject(value) ? (schema.required ?? []) : []).filter((name) => !Object.hasOwn(value, name));
    return [
        ...Object.entries(value).flatMap(([name, member]) => {
            const own = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
            const inner = Array.isArray(value) ? items : own;
            const at = pointer + toPointer(name);
            if (inner === false)
                return [{ pointer: at, message: "is unknown" }];
            return isObject(inner) ? findProblems(inner, member, at) : [];
        }),
        ...missing.map((name) => ({ pointer: pointer + toPointer(name), message: "is missing" })),
    ];
}
