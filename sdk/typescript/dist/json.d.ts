/** JSON texts: what `JSON.parse` does not tell. */
/** A value, and what its text tells besides. */
export interface Parsed {
    value: unknown;
    /** The elements of an array, as they are written. */
    elements: string[];
    /** The member `id` of an object as it is written, where that is not what `encode` writes. */
    id: string | undefined;
    /** JSON pointers of members that occur twice. */
    duplicates: string[];
}
/** Returns the compact text of a value. */
export declare const encode: {
    (value: any, replacer?: (this: any, key: string, value: any) => any, space?: string | number): string;
    (value: any, replacer?: (number | string)[] | null, space?: string | number): string;
};
/** Parses a text. Throws a SyntaxError if it is no JSON. */
export declare function parseJson(text: string): Parsed;
/** Returns a name or an index as a part of a JSON pointer. */
export declare function toPointer(name: string | number): string;
/** Returns whether a value is a JSON object. */
export declare function isObject(value: unknown): value is Record<string, unknown>;
/** Returns the members of an object; none of any other value. */
export declare function membersOf(value: unknown): Record<string, unknown>;
