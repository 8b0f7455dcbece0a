const pattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Whether a key can have this name. It becomes part of a file name, so it holds no separators and starts no path. */
export const isKeyName = (name: string): boolean => pattern.test(name)
