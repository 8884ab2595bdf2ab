/** JSON texts and values: what `JSON.parse` does not tell, and what a value is. */
/** A value, and what its text tells besides. */
export interface Parsed {
    value: unknown;
    /** The elements of an array, as they are written. */
    elements: string[];
    /** The member `id` of an object as it is written, where that is not what `encode` writes. */
    id: string | undefined;
    /** JSON pointers of members that occur twice. */
    twice: string[];
}
/** Returns the compact text of a value. */
export declare const encode: {
    (value: any, replacer?: (this: any, key: string, value: any) => any, space?: string | number): string;
    (value: any, replacer?: (number | string)[] | null, space?: string | number): string;
};
/** Returns whether two values are the same, whatever the order of their members. */
export { isDeepStrictEqual as isEqual } from "node:util";
/** Returns whether a value is an array. */
export declare const isArray: (value: unknown) => value is unknown[];
/** Parses a text. Throws a SyntaxError if it is no JSON. */
export declare const parseJson: (text: string) => Parsed;
/** Returns a name or an index as a part of a JSON pointer. */
export declare const toPointer: (name: string | number) => string;
/** Returns whether a value is a JSON object. */
export declare const isObject: (value: unknown) => value is Record<string, unknown>;
/** Returns the members of an object; none of any other value. */
export declare const membersOf: (value: unknown) => Record<string, unknown>;
