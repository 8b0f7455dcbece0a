/** RFC 4512 2.5: a name or an OID, with options. What is none has no values on any server. */
export const isAttributeDescription = (text: string): boolean =>
  text.length <= 256 && /^(?:[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)(?:;[A-Za-z0-9-]+)*$/.test(text)
