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
export const encode = JSON.stringify;

/** Returns whether two values are the same, whatever the order of their members. */
export { isDeepStrictEqual as isEqual } from "node:util";

/** Returns whether a value is an array. */
export const isArray: (value: unknown) => value is unknown[] = Array.isArray;

/** Parses a text. Throws a SyntaxError if it is no JSON. */
export const parseJson = (text: string): Parsed => {
  const value: unknown = JSON.parse(text);
  const elements: string[] = [];
  const twice: string[] = [];
  const path: { keys: Set<string>; at: string | number }[] = [];
  let id: string | undefined;
  let start = 0;
  let last = "";
  // The text of an object that we would write has nothing more to tell.
  const isOwn = !isArray(value) && encode(value) === text;
  for (const { 0: token, index } of isOwn ? [] : text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g)) {
    const top = path.at(-1);
    if (path.length === 1 && ",:}]".includes(token)) {
      const part = text.slice(start, index).trim();
      if (typeof top?.at === "number") elements.push(part);
      else if (top?.at === "id" && token !== ":") id = part;
      start = index + 1;
    }
    if (token === "{" || token === "[") {
      if (!top) start = index + 1;
      path.push({ keys: new Set(), at: token === "[" ? 0 : "" });
    } else if (token === "}" || token === "]") {
      path.pop();
    } else if (token === "," && typeof top?.at === "number") {
      top.at++;
    } else if (token === ":" && top) {
      const key = (top.at = JSON.parse(last) as string);
      if (top.keys.has(key)) twice.push(path.map(({ at }) => toPointer(at)).join(""));
      top.keys.add(key);
    }
    last = token;
  }
  return { value, elements, id, twice };
};

/** Returns a name or an index as a part of a JSON pointer. */
export const toPointer = (name: string | number): string =>
  `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Returns whether a value is a JSON object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !isArray(value);

/** Returns the members of an object; none of any other value. */
export const membersOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});
