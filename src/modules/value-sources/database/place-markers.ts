const tokens = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g

/** A statement of the predecessor's form, whose places are `?`, in ours: each place gets the name. Quoted text stays. */
export const namePlaces = (statement: string, name: string): string =>
  statement.replace(tokens, (token) => (token === '?' ? `:${name}` : token))

/** The text as a part of what `like` matches, where the backslash is the escape character. */
export const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
