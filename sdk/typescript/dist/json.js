/** JSON texts: what `JSON.parse` does not tell. */
/** Returns the compact text of a value. */
export const encode = JSON.stringify;
/** Parses a text. Throws a SyntaxError if it is no JSON. */
export function parseJson(text) {
    const value = JSON.parse(text);
    const elements = [];
    const duplicates = [];
    const path = [];
    let id;
    let start = 0;
    let last = "";
    // The text of an object that we would write has nothing more to tell.
    const isOwn = !Array.isArray(value) && encode(value) === text;
    for (const { 0: token, index } of isOwn ? [] : text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g)) {
        const top = path.at(-1);
        if (path.length === 1 && ",:}]".includes(token)) {
            const part = text.slice(start, index).trim();
            if (typeof top?.at === "number")
                elements.push(part);
            else if (top?.at === "id" && token !== ":")
                id = part;
            start = index + 1;
        }
        if (token === "{" || token === "[") {
            if (!top)
                start = index + 1;
            path.push(token === "{" ? { keys: new Set(), at: "" } : { at: 0 });
        }
        else if (token === "}" || token === "]") {
            path.pop();
        }
        else if (token === "," && typeof top?.at === "number") {
            top.at++;
        }
        else if (token === ":" && top?.keys) {
            const key = (top.at = JSON.parse(last));
            if (top.keys.has(key))
                duplicates.push(path.map(({ at }) => toPointer(at)).join(""));
            top.keys.add(key);
        }
        last = token;
    }
    return { value, elements, id, duplicates };
}
/** Returns a name or an index as a part of a JSON pointer. */
export function toPointer(name) {
    return `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
/** Returns whether a value is a JSON object. */
export function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
/** Returns the members of an object; none of any other value. */
export function membersOf(value) {
    return isObject(value) ? value : {};
}
