/** The part of JSON Schema that has types in TypeScript: these types, and a check that reports all problems. */
import { problem } from "./errors.js";
import { encode, isArray, isEqual, isObject, toPointer } from "./json.js";
/** Returns the schema of an object with these properties. One without a default is required. */
export const objectSchema = (properties) => ({
    type: "object",
    properties,
    required: Object.keys(properties).filter((name) => properties[name]?.default === undefined),
    additionalProperties: false,
});
/** Returns all problems of a value, each with a pointer that begins with `pointer`. */
export const findProblems = (schema, value, pointer = "") => {
    const { enum: allowed, properties = {}, required = [] } = schema;
    const kind = isArray(value) ? "array" : value == null ? "null" : typeof value;
    const types = [schema.type ?? kind].flat();
    const message = !types.some((name) => name === kind || (name === "integer" && Number.isInteger(value)))
        ? `expected \`${types.join(" | ")}\`, got \`${kind}\``
        : allowed && !allowed.some((each) => isEqual(each, value))
            ? `is none of ${encode(allowed)}`
            : "";
    if (message)
        return [problem(pointer, message)];
    if (!isArray(value) && !isObject(value))
        return [];
    const missing = isArray(value) ? [] : required.filter((name) => !Object.hasOwn(value, name));
    return [
        ...Object.entries(value).flatMap(([name, member]) => {
            const own = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
            const inner = isArray(value) ? schema.items : own;
            const at = pointer + toPointer(name);
            if (inner === false)
                return [problem(at, "is unknown")];
            return isObject(inner) ? findProblems(inner, member, at) : [];
        }),
        ...missing.map((name) => problem(pointer + toPointer(name), "is missing")),
    ];
};
